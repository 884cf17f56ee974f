#include "kernels/squeeze_excite/squeeze_excite.h"

#include "kernels/levels.h"

namespace softneuro {

SN_KERNEL_LIST(SqueezeExciteKernels, squeeze_excite, SN_VECTOR_LEVELS)
const SqueezeExciteKernels* squeeze_excite_kernels(Isa isa) { return find_kernels(squeeze_excite_list, isa); }

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
