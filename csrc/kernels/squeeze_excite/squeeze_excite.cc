#include "kernels/squeeze_excite/squeeze_excite.h"

namespace softneuro {

#define SN_KERNELS(isa) extern const SqueezeExciteKernels squeeze_excite_##isa;
#include "kernels/squeeze_excite/kernels.inc"
#undef SN_KERNELS

const SqueezeExciteKernels* squeeze_excite_kernels(Isa isa) {
  if (!isa_available(isa)) return nullptr;
#define SN_KERNELS(level) \
  if (isa == Isa::level) return &squeeze_excite_##level;
#include "kernels/squeeze_excite/kernels.inc"
#undef SN_KERNELS
  return nullptr;
}

void squeeze_excite_pack(int rows, int columns, int block, const float* weights, float* packed) {
  for (int first = 0; first < rows; first += block) {
    for (int column = 0; column < columns; ++column) {
      for (int lane = 0; lane < block; ++lane) {
        const int row = first + lane;
        *packed++ = row < rows ? weights[static_cast<size_t>(row) * static_cast<size_t>(columns) + column] : 0.0f;
      }
    }
  }
}

}  // namespace softneuro
