// What Winograd's method is worth, by rough counts: which of its params are measured. Nothing here changes what is
// right.
#pragma once

#include <vector>

#include "layers/conv2d/winograd.h"

namespace softneuro {

struct WinogradTiling {
  WinogradShape shape;
  int tile;
  int blocks[2];  // tiles per block: first what should be best
  double cost, error;
};

// The cost of Winograd on one level, whose products have additions for multiplications or are plain.
class WinogradCost {
 public:
  WinogradCost(const WinogradKernels& kernels, bool adds) : kernels_(kernels), adds_(adds) {}

  // Whether it is worth measuring: with additions, to prepare a tile's positions takes what two output blocks' products
  // save, and few channels' sums are short.
  bool promises(const Conv2dParams& p) const;
  // Tile sizes with the blocks to try, cheapest first by a rough count of vector operations and weight traffic; of
  // those whose scratch is not too large.
  std::vector<WinogradTiling> tilings(const Conv2dParams& p, int threads) const;
  // What to measure, the default first. has_rows: weights can be read where the model has them.
  std::vector<WinogradParams> choices(const Conv2dParams& p, int threads, bool has_rows) const;

 private:
  // The cost of the plain sum, by the same count.
  double plain(const Conv2dParams& p) const;
  bool keeps_in_registers(const WinogradShape& shape) const;

  const WinogradKernels& kernels_;
  bool adds_;
};

// As a childnet of stages (winograd_stages.cc): whether weights pass through the last cache once, instead of once per
// block of the fused schedule, and there are tiles enough to pay for the way through memory.
bool winograd_stages_promise(const Conv2dParams& p, const WinogradShape& shape);

}  // namespace softneuro
