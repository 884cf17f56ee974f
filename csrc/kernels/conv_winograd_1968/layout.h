// Where packed weights lie: for each block of output channels a square for each block of input channels, [c][lane],
// then what sums start with, the scales and the bias of the block's channels.
#pragma once

#include "kernels/conv_winograd_1968/conv_winograd_1968.h"
#include "kernels/integers.h"

namespace softneuro {

struct ConvWinograd1968Layout {
  int in_blocks, out_blocks;
  size_t products, panel;  // floats of an output block: of its products' weights, of all

  [[gnu::always_inline]] constexpr ConvWinograd1968Layout(const PointwiseShape& s, int block)
      : in_blocks(ceil_div(s.in_channels, block)),
        out_blocks(ceil_div(s.out_channels, block)),
        products(static_cast<size_t>(in_blocks) * block * block),
        panel(products + 3 * static_cast<size_t>(block)) {}
};

}  // namespace softneuro
