// torch.ops.softneuro: the ops that run regions, on the LibTorch stable ABI.
#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>
#include <torch/csrc/stable/tensor.h>

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "layers/host/host.h"
#include "runtime/region_table.h"
#include "torch_backend/native/known_run.h"
#include "torch_backend/native/ops/run_net.h"
#include "torch_backend/native/ops/tensor_fields.h"

namespace {

using softneuro::Ready;
using softneuro::RegionTable;
using torch::stable::Tensor;

// A region's inputs, and what its net is looked up by: torch's threads, each input's form (append_input) and sizes, the
// symbolic sizes.
class Inputs {
 public:
  Inputs(const std::vector<Tensor>& tensors, const std::vector<int64_t>& sizes) : tensors_(tensors) {
    signature_.reserve(1 + tensors.size() * 5 + sizes.size());
    signature_.push_back(torch::stable::get_num_threads());
    lie_right_.reserve(tensors.size());
    for (const Tensor& tensor : tensors) lie_right_.push_back(softneuro::append_input(tensor.get(), signature_));
    signature_.insert(signature_.end(), sizes.begin(), sizes.end());
  }

  const std::vector<int64_t>& signature() const { return signature_; }
  // Whether all that the net writes to are as they lie. Of others it would write to copies.
  bool fit(const softneuro::Net& net) const {
    for (size_t i = 0; i < net.output_descs().size(); ++i) {
      const int updated = net.updated_input(i);
      if (updated >= 0 && !lie_right_[static_cast<size_t>(updated)]) return false;
    }
    return true;
  }
  // Copies what nets do not take as it lies; for as long as this lives.
  std::vector<const void*> memory() {
    std::vector<const void*> data;
    data.reserve(tensors_.size());
    for (size_t i = 0; i < tensors_.size(); ++i) {
      if (!lie_right_[i]) copies_.push_back(torch::stable::contiguous(tensors_[i]));
      data.push_back(lie_right_[i] ? tensors_[i].data_ptr() : copies_.back().data_ptr());
    }
    return data;
  }

 private:
  const std::vector<Tensor>& tensors_;
  std::vector<int64_t> signature_;
  std::vector<char> lie_right_;
  std::vector<Tensor> copies_;
};

// The net's outputs but for those that are inputs, which an op's results may not be: at least one tensor.
std::vector<Tensor> run_net(const Ready& ready, Inputs& inputs) {
  const std::vector<const void*> in = inputs.memory();
  std::vector<Tensor> outputs;
  std::vector<void*> out;
  for (size_t i = 0; i < ready.net->output_descs().size(); ++i) {
    void* data = nullptr;
    if (ready.net->updated_input(i) < 0) data = outputs.emplace_back(softneuro::empty_output(ready, i)).data_ptr();
    out.push_back(data);
  }
  softneuro::run_on_torch(ready, in, out);
  // Callers take a run without results for one that did not happen.
  if (outputs.empty()) outputs.push_back(torch::stable::empty({0}));
  return outputs;
}

// The op's list of weights: owns the list and the handles in it. A network has hundreds, and a stable::Tensor for each
// would take longer than all the rest of a call.
class WeightList {
 public:
  explicit WeightList(StableListHandle list) : list_(list) { torch_list_size(list_, &size_); }
  ~WeightList() {
    if (list_ == nullptr) return;
    for (size_t i = 0; i < size_; ++i) aoti_torch_delete_tensor_object(handle(i));
    torch_delete_list(list_);
  }
  WeightList(const WeightList&) = delete;
  WeightList& operator=(const WeightList&) = delete;

  std::vector<const void*> addresses() const {
    std::vector<const void*> data(size_);
    for (size_t i = 0; i < size_; ++i) {
      void* address = nullptr;
      STABLE_TORCH_ERROR_CODE_CHECK(aoti_torch_get_data_ptr(handle(i), &address));
      data[i] = address;
    }
    return data;
  }
  // Gives all of it away.
  StableListHandle release() { return std::exchange(list_, nullptr); }

 private:
  AtenTensorHandle handle(size_t i) const {
    StableIValue element{};
    STABLE_TORCH_ERROR_CODE_CHECK(torch_list_get_item(list_, i, &element));
    return torch::stable::detail::to<AtenTensorHandle>(element);
  }

  StableListHandle list_;
  size_t size_ = 0;
};

// An op that Python implements.
std::vector<Tensor> run_in_python(const char* op, const std::string& handle, const std::vector<Tensor>& inputs,
                                  WeightList& weights, const std::vector<int64_t>& sizes) {
  StableIValue stack[] = {torch::stable::detail::from(handle), torch::stable::detail::from(inputs),
                          torch::stable::detail::from(weights.release()), torch::stable::detail::from(sizes)};
  if (torch_call_dispatcher(op, "", stack, TORCH_ABI_VERSION) != 0) {
    throw softneuro::Error(softneuro::take_region_error(), "region " + handle);
  }
  return torch::stable::detail::to<std::vector<Tensor>>(stack[0]);
}

std::vector<int64_t> region_signature(const std::vector<Tensor>& inputs, const std::vector<int64_t>& sizes) {
  return Inputs(inputs, sizes).signature();
}

std::vector<Tensor> run_region(const std::string& handle, const std::vector<Tensor>& tensors,
                               StableListHandle weight_list, const std::vector<int64_t>& sizes) {
  WeightList weights(weight_list);
  Inputs inputs(tensors, sizes);
  const auto region = RegionTable::global().find(handle);
  const auto ready = region ? region->find_at(inputs.signature(), weights.addresses()) : nullptr;
  // What is not ready is prepared, measured or run on the host.
  const bool left = ready ? !ready->net || !inputs.fit(*ready->net) : region && region->first_sight(inputs.signature());
  if (!ready && !left) return run_in_python("softneuro::run_region_slow", handle, tensors, weights, sizes);
  if (left) return run_in_python("softneuro::run_region_instead", handle, tensors, weights, sizes);
  try {
    const softneuro::ProfilerRange range(handle);
    return run_net(*ready, inputs);
  } catch (const softneuro::HostStepError&) {
    return run_in_python("softneuro::run_region_on_host", handle, tensors, weights, sizes);
  }
}

// As run_net, for an op that gives nothing where the caller is to take the way around, which is run_region's.
std::vector<Tensor> try_net(const std::string& handle, const Ready& ready, Inputs& inputs) {
  try {
    const softneuro::ProfilerRange range(handle);
    return run_net(ready, inputs);
  } catch (const softneuro::HostStepError&) {
    return {};
  }
}

// A net that the region is about to judge, at this address. No outputs where a step of it has raised.
std::vector<Tensor> run_made(const std::string& handle, const std::vector<Tensor>& tensors, int64_t ready) {
  Inputs inputs(tensors, {});
  return try_net(handle, *reinterpret_cast<const Ready*>(ready), inputs);
}

// The same for weights that the caller knows, who keeps them alive: a call with hundreds of tensors spends more time on
// handing these around than on all else. No outputs where no net is ready; left_to_host() says whether the host is to
// run the call.
std::vector<Tensor> run_known(const std::string& handle, const std::vector<Tensor>& tensors, int64_t identity,
                              int64_t epoch, const std::vector<int64_t>& sizes) {
  Inputs inputs(tensors, sizes);
  const softneuro::WeightSet weights{static_cast<uint64_t>(identity), static_cast<uint64_t>(epoch)};
  const auto region = RegionTable::global().find(handle);
  const auto ready = region ? region->find(inputs.signature(), weights) : nullptr;
  const bool runs = ready && ready->net && inputs.fit(*ready->net);
  softneuro::set_left_to_host(ready ? !runs : region && region->first_sight(inputs.signature()));
  return runs ? try_net(handle, *ready, inputs) : std::vector<Tensor>();
}

// The same for regions that write to inputs, which are given once more for torch to know of.
std::vector<Tensor> run_region_updating(const std::string& handle, const std::vector<Tensor>&,
                                        const std::vector<Tensor>& tensors, StableListHandle weight_list,
                                        const std::vector<int64_t>& sizes) {
  return run_region(handle, tensors, weight_list, sizes);
}
std::vector<Tensor> run_known_updating(const std::string& handle, const std::vector<Tensor>&,
                                       const std::vector<Tensor>& tensors, int64_t identity, int64_t epoch,
                                       const std::vector<int64_t>& sizes) {
  return run_known(handle, tensors, identity, epoch, sizes);
}

}  // namespace

STABLE_TORCH_LIBRARY(softneuro, m) {
  m.def("run_region(str handle, Tensor[] inputs, Tensor[] weights, SymInt[] sizes) -> Tensor[]");
  m.def("run_known(str handle, Tensor[] inputs, int identity, int epoch, SymInt[] sizes) -> Tensor[]");
  m.def(
      "run_region_updating(str handle, Tensor(a!)[] written, Tensor[] inputs, Tensor[] weights, SymInt[] sizes) -> "
      "Tensor[]");
  m.def(
      "run_known_updating(str handle, Tensor(a!)[] written, Tensor[] inputs, int identity, int epoch, SymInt[] sizes) "
      "-> Tensor[]");
  m.def("run_made(str handle, Tensor[] inputs, int ready) -> Tensor[]");
  m.def("region_signature(Tensor[] inputs, SymInt[] sizes) -> int[]");
  m.def("tensor_fields() -> int[]");
  m.def("known_run() -> int");
  m.def("run_region_slow(str handle, Tensor[] inputs, Tensor[] weights, SymInt[] sizes) -> Tensor[]");
  m.def("run_region_instead(str handle, Tensor[] inputs, Tensor[] weights, SymInt[] sizes) -> Tensor[]");
  m.def("run_region_on_host(str handle, Tensor[] inputs, Tensor[] weights, SymInt[] sizes) -> Tensor[]");
}

STABLE_TORCH_LIBRARY_IMPL(softneuro, CompositeExplicitAutograd, m) {
  m.impl("region_signature", TORCH_BOX(&region_signature));
  m.impl("tensor_fields", TORCH_BOX(&softneuro::tensor_fields));
  m.impl("known_run", TORCH_BOX(&softneuro::known_run));
}

STABLE_TORCH_LIBRARY_IMPL(softneuro, CPU, m) {
  m.impl("run_region", TORCH_BOX(&run_region));
  m.impl("run_known", TORCH_BOX(&run_known));
  m.impl("run_region_updating", TORCH_BOX(&run_region_updating));
  m.impl("run_known_updating", TORCH_BOX(&run_known_updating));
  m.impl("run_made", TORCH_BOX(&run_made));
}
