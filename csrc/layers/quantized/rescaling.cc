#include "layers/quantized/rescaling.h"

#include "layers/quantized/quantization.h"

namespace softneuro {

Rescaling::Rescaling(const Quantization& from, const Quantization& to, Isa isa)
    : add_(elementwise_kernel(isa, ElementwiseOp::add, Access::full, Access::scalar)),
      formats_{.dst = quantized_format(to), .a = quantized_format(from), .b = {.type = DType::uint8}} {
  const double ratio = static_cast<double>(from.scales[0]) / static_cast<double>(to.scales[0]);
  formats_.a.scale = static_cast<float>(ratio), formats_.dst.scale = 1;
}

void Rescaling::run(const void* src, void* dst, int64_t count) const {
  const uint8_t nothing = 0;
  const ClampBounds none;
  add_({dst, src, &nothing, nullptr, 1, count, 0, 0, 0, none.lo, none.hi, &formats_});
}

}  // namespace softneuro
