// The one file that knows torch's own classes, whose layout is no part of the stable ABI. Only what their headers say
// is taken from them, for whoever finds the same torch when it runs; nothing of torch's is called or linked.
#include "torch_backend/native/ops/tensor_fields.h"

#include <c10/core/TensorImpl.h>
#include <torch/csrc/autograd/variable.h>
#include <torch/headeronly/version.h>

#include <cstddef>

namespace softneuro {
namespace {

#pragma GCC diagnostic ignored "-Winvalid-offsetof"  // compilers do as one would think, without virtual bases
struct Fields : c10::TensorImpl {
  static constexpr int64_t place_of_storage() { return offsetof(Fields, storage_); }
  static constexpr int64_t place_of_autograd() { return place_of_storage() + int64_t{sizeof(storage_)}; }  // private
  static constexpr int64_t place_of_counter() { return offsetof(Fields, version_counter_); }
};

}  // namespace

std::vector<int64_t> tensor_fields() {
  using torch::autograd::AutogradMeta;
  return {TORCH_VERSION_MAJOR,
          TORCH_VERSION_MINOR,
          TORCH_VERSION_PATCH,
          int64_t{sizeof(c10::TensorImpl)},
          int64_t{sizeof(c10::intrusive_ptr_target)},
          Fields::place_of_storage(),
          Fields::place_of_counter(),
          Fields::place_of_autograd(),
          int64_t{offsetof(AutogradMeta, requires_grad_)},
          int64_t{offsetof(AutogradMeta, grad_fn_)}};
}

}  // namespace softneuro
