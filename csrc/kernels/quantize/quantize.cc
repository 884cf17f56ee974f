#include "kernels/quantize/quantize.h"

#include "kernels/levels.h"

namespace softneuro {

SN_KERNEL_LIST(QuantizeKernels, quantize, SN_VECTOR_LEVELS)
const QuantizeKernels* quantize_kernels(Isa isa) { return find_built(quantize_list, isa); }

void look_up_bytes(const ByteTable& table, const uint8_t* src, uint8_t* dst, int64_t count) {
  const uint8_t* const values = table.data();
  int64_t i = 0;
  for (; i + 8 <= count; i += 8) {
    uint64_t all, found = 0;
    __builtin_memcpy(&all, src + i, 8);
    for (int k = 0; k < 64; k += 8) found |= uint64_t{values[all >> k & 255]} << k;
    __builtin_memcpy(dst + i, &found, 8);
  }
  for (; i < count; ++i) dst[i] = values[src[i]];
}

}  // namespace softneuro
