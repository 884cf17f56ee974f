#include "kernels/convert/convert.h"

#include "base/arch.h"

namespace softneuro {
namespace {

const ConvertKernels* kernels_of(Isa isa) {
#define SN_KERNEL(level) \
  if (isa == Isa::level) return &convert_##level;
#include "kernels/convert/kernels.inc"
#undef SN_KERNEL
  return nullptr;
}

}  // namespace

ConvertKernel convert_kernel(Isa isa, DType from, DType to) {
  const ConvertKernels* kernels = kernels_of(isa);
  if (kernels == nullptr) return nullptr;
#define SN_FIND(name, type)                                                     \
  if (from == DType::name && to == DType::float32) return kernels->from_##name; \
  if (from == DType::float32 && to == DType::name) return kernels->to_##name;
  SN_CONVERTED(SN_FIND)
#undef SN_FIND
  return nullptr;
}

}  // namespace softneuro
