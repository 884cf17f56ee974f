#include "kernels/conv_bfloat16/conv_bfloat16.h"

#include "kernels/conv_bfloat16/bfloat16.h"
#include "kernels/integers.h"

namespace softneuro {

#define SN_KERNELS(isa) extern const ConvBfloat16Kernels conv_bfloat16_##isa;
#include "kernels/conv_bfloat16/kernels.inc"
#undef SN_KERNELS

const ConvBfloat16Kernels* conv_bfloat16_kernels(Isa isa) {
  if (!isa_available(isa)) return nullptr;
#define SN_KERNELS(level) \
  if (isa == Isa::level) return &conv_bfloat16_##level;
#include "kernels/conv_bfloat16/kernels.inc"
#undef SN_KERNELS
  return nullptr;
}

int conv_bfloat16_panels(const ConvBfloat16Shape& shape, int block) {
  return ceil_div(ceil_div(shape.out_channels, block), shape.panel);
}

size_t conv_bfloat16_packed_bytes(const ConvBfloat16Shape& shape, int block) {
  const auto tile = static_cast<size_t>(block * block) * 4;
  const int blocks = ceil_div(shape.out_channels, block), pairs = ceil_div(shape.in_channels, 2 * block);
  return tile * static_cast<size_t>(shape.parts * blocks) * static_cast<size_t>(pairs) *
         static_cast<size_t>(shape.taps());
}

namespace {

// Where a channel's parts belong in the tiles of a pair of input blocks: channel i of either block in row i, one beside
// the other. A block alone meets rows of (first, second) and (third, first) parts of pixels: its tiles are the first
// parts twice, the second ones twice, and the first beside the third.
template <class Set>
void place(int parts, bool half, int block, int i, float x, const Set& set) {
  uint16_t part[3] = {};
  for (int p = 0; p < parts; ++p) part[p] = take_bfloat16(x);
  if (!half) {
    for (int p = 0; p < parts; ++p) set(p, i % block, i / block, part[p]);
    return;
  }
  for (int p = 0; p < 2; ++p) set(p, i, 0, part[p]), set(p, i, 1, part[p]);
  if (parts == 3) set(2, i, 0, part[0]), set(2, i, 1, part[2]);
}

}  // namespace

// By panel, pair of input blocks and tap: the tiles of the first parts, one for each output block, then those of the
// others.
void conv_bfloat16_pack(const ConvBfloat16Shape& shape, int block, const float* weights, void* packed) {
  auto* to = static_cast<uint16_t*>(packed);
  const int blocks = ceil_div(shape.out_channels, block), pairs = ceil_div(shape.in_channels, 2 * block);
  const auto taps = static_cast<size_t>(shape.taps());
  const int tile = 2 * block * block;
  for (int first = 0; first < blocks; first += shape.panel) {
    const int panel = first + shape.panel < blocks ? shape.panel : blocks - first;
    for (int pair = 0; pair < pairs; ++pair) {
      const bool half = shape.in_channels - 2 * block * pair <= block;
      for (size_t tap = 0; tap < taps; ++tap, to += shape.parts * panel * tile) {
        // As the weights lie, all parts of each at once.
        for (int row = 0; row < panel * block; ++row) {
          const int k = first * block + row;
          const float* const from =
              weights + static_cast<size_t>(k) * static_cast<size_t>(shape.in_channels) * taps + tap;
          uint16_t* const column = to + row / block * tile + 2 * (row % block);
          for (int i = 0; i < (half ? block : 2 * block); ++i) {
            const int c = 2 * block * pair + i;
            const bool inside = k < shape.out_channels && c < shape.in_channels;
            place(shape.parts, half, block, i, inside ? from[static_cast<size_t>(c) * taps] : 0.0f,
                  [&](int part, int at, int side, uint16_t value) {
                    column[part * panel * tile + at * 2 * block + side] = value;
                  });
          }
        }
      }
    }
  }
}

}  // namespace softneuro
