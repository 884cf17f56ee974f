#include "torch_backend/native/known_run.h"

#include <torch/csrc/inductor/aoti_torch/c/shim.h>
#include <torch/csrc/stable/ops.h>

#ifdef __linux__
#include <dlfcn.h>
#endif

#include <algorithm>
#include <vector>

#include "runtime/region_table.h"
#include "torch_backend/native/ops/run_net.h"

namespace softneuro {
namespace {

// Torch's Python library has THPVariable_Wrap(const at::TensorBase&). It is not in the stable ABI, which knows no
// Python, so it is looked for when it is wanted and not linked.
using Wrap = void* (*)(const void* tensor);
Wrap torch_wrap = nullptr;

void find_wrap() {
#ifdef __linux__
  if (void* const library = dlopen("libtorch_python.so", RTLD_NOW | RTLD_NOLOAD)) {
    torch_wrap = reinterpret_cast<Wrap>(dlsym(library, "_Z16THPVariable_WrapRKN2at10TensorBaseE"));
    dlclose(library);
  }
#endif
}

AtenTensorHandle handle_of(void* tensor) { return static_cast<AtenTensorHandle>(tensor); }

// Null for what nets do not take as it lies.
const void* data_of(AtenTensorHandle input, std::vector<int64_t>& signature) {
  void* data = nullptr;
  if (!append_input(input, signature) || aoti_torch_get_data_ptr(input, &data) != 0) return nullptr;
  return data;
}

void drop(void* tensor) { aoti_torch_delete_tensor_object(handle_of(tensor)); }

size_t run(Region& region, std::span<void* const> inputs, std::span<const int64_t> sizes, const WeightSet& weights,
           std::span<void*> outputs) {
  std::vector<int64_t> signature;
  signature.reserve(1 + inputs.size() * 5 + sizes.size());
  signature.push_back(torch::stable::get_num_threads());
  set_left_to_host(false);
  std::vector<const void*> in;
  in.reserve(inputs.size());
  for (void* const input : inputs) {
    in.push_back(data_of(handle_of(input), signature));
    if (in.back() == nullptr) return 0;
  }
  signature.insert(signature.end(), sizes.begin(), sizes.end());
  const auto ready = region.find(signature, weights);
  set_left_to_host(ready ? !ready->net : region.first_sight(signature));
  const size_t count = ready && ready->net ? ready->net->output_descs().size() : 0;
  if (count == 0 || count > outputs.size()) return 0;

  const ProfilerRange range(region.settings().name);
  std::vector<void*> out(count);
  size_t made = 0;
  try {
    while (made < count) {
      const int updated = ready->net->updated_input(made);
      AtenTensorHandle output = nullptr;
      if (updated >= 0) {
        STABLE_TORCH_ERROR_CODE_CHECK(
            aoti_torch_new_tensor_handle(handle_of(inputs[static_cast<size_t>(updated)]), &output));
      } else {
        output = empty_output(*ready, made);
      }
      outputs[made++] = output;
      void* data = nullptr;
      STABLE_TORCH_ERROR_CODE_CHECK(aoti_torch_get_data_ptr(output, &data));
      out[made - 1] = data;
    }
    run_on_torch(*ready, in, out);
  } catch (...) {
    std::for_each_n(outputs.begin(), made, drop);
    throw;
  }
  return count;
}

}  // namespace

int64_t known_run() {
  static const KnownRun functions{&run, [](void* tensor) { return torch_wrap(tensor); }, &drop};
  static const bool found = [] {
    find_wrap();
    return torch_wrap != nullptr;
  }();
  return found ? reinterpret_cast<int64_t>(&functions) : 0;
}

}  // namespace softneuro
