#include "kernels/convert/convert.h"

#include "kernels/levels.h"

namespace softneuro {

SN_KERNEL_LIST(ConvertKernels, convert, SN_VECTOR_LEVELS)

ConvertKernel convert_kernel(Isa isa, DType from, DType to) {
  const ConvertKernels* kernels = find_built(convert_list, isa);
  if (kernels == nullptr) return nullptr;
#define SN_FIND(name, type)                                                     \
  if (from == DType::name && to == DType::float32) return kernels->from_##name; \
  if (from == DType::float32 && to == DType::name) return kernels->to_##name;
  SN_CONVERTED(SN_FIND)
#undef SN_FIND
  return nullptr;
}

}  // namespace softneuro
