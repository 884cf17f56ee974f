#include "providers/ort/host/given_initializers.h"

#include <cstring>
#include <set>

#include "base/log.h"

namespace softneuro::ort {
namespace {

bool fits(const std::shared_ptr<const HostTensor>& given, const HostTensor& own) {
  return given != nullptr && given->type == own.type && given->dims == own.dims;
}

}  // namespace

GivenInitializers::GivenInitializers(const OrtSessionOptions* options, bool may_read)
    : options_(create<fn::ReleaseSessionOptions, OrtSessionOptions>(fn::CloneSessionOptions, options)),
      asked_options_(create<fn::ReleaseSessionOptions, OrtSessionOptions>(fn::CloneSessionOptions, options)),
      may_read_(may_read) {
  static const float value = 0;
  static const int64_t dim = 1;
  stand_in_ = tensor_over(&value, DType::float32, {&dim, 1});
}

bool GivenInitializers::is_given(const std::string& name) {
  const auto [found, is_new] = asked_.try_emplace(name, false);
  if (!is_new) return found->second;
  OrtStatus* status = Runtime::get().function(fn::AddInitializer)(asked_options_.get(), name.c_str(), stand_in_.get());
  found->second = status != nullptr;
  if (status != nullptr) call(fn::ReleaseStatus, status);
  return found->second;
}

void GivenInitializers::read(const HostGraph& graph, const std::vector<int>& ids) {
  HostGraph alone;
  alone.opsets = graph.opsets;
  for (const int id : ids) {
    known_[graph.value(id).name] = nullptr;
    alone.outputs.push_back(static_cast<int>(alone.values.size()));
    alone.values.push_back(graph.value(id));
  }
  if (ids.empty() || !may_read_) return;
  try {
    const HostRegion session(alone, {.plain = true, .step = true, .base = options_.get()});
    std::vector<ValueOwner> values = session.run({});
    for (size_t i = 0; i < values.size(); ++i) {
      const std::shared_ptr<OrtValue> value = std::move(values[i]);
      const TensorInfo info = tensor_info(value.get());
      if (!info.type.dtype()) continue;
      const std::shared_ptr<const void> data(value, get<const void*>(fn::GetTensorData, value.get()));
      known_[alone.values[i].name] = std::make_shared<const HostTensor>(HostTensor{info.type.known(), info.dims, data});
    }
  } catch (const std::exception& error) {
    log_warning(std::string("initializers that the program gives cannot be read: ") + error.what());
  }
}

std::map<int, GivenInitializers::Tensor> GivenInitializers::find(const HostGraph& graph) {
  std::set<int> used;
  for (const HostNode& node : graph.nodes) {
    used.insert(node.inputs.begin(), node.inputs.end());
    used.insert(node.implicit_inputs.begin(), node.implicit_inputs.end());
  }
  std::vector<int> unknown;
  std::map<int, Tensor> found;
  for (const int id : used) {
    if (id < 0 || !graph.value(id).constant || !is_given(graph.value(id).name)) continue;
    found.emplace(id, nullptr);
    if (!known_.contains(graph.value(id).name)) unknown.push_back(id);
  }
  read(graph, unknown);
  for (auto& [id, tensor] : found) tensor = known_.at(graph.value(id).name);
  return found;
}

void GivenInitializers::put_into(HostGraph& graph) {
  std::map<int, std::string> kept;  // by value: why the host keeps what reads it
  for (const auto& [id, tensor] : find(graph)) {
    HostValue& value = graph.values[static_cast<size_t>(id)];
    const bool known = fits(tensor, *value.constant);
    if (!known) {
      kept[id] = "the program gives '" + value.name + "' itself, " +
                 (may_read_ ? "which is not what the model has there" : "and a compiled model does not keep that");
    }
    value.constant = known ? tensor : nullptr;
  }
  for (HostNode& node : graph.nodes) {
    for (const int id : node.inputs) {
      if (const auto found = kept.find(id); found != kept.end() && node.not_ours.empty()) node.not_ours = found->second;
    }
  }
}

bool GivenInitializers::put_into_saved(HostGraph& graph) {
  bool any = false;
  for (const auto& [id, tensor] : find(graph)) {
    HostValue& value = graph.values[static_cast<size_t>(id)];
    if (!fits(tensor, *value.constant)) {
      throw Error("the program gives '" + value.name + "' itself, which is not what the compiled model has there", {},
                  "load the model that it was made from");
    }
    if (std::memcmp(tensor->data.get(), value.constant->data.get(), tensor->bytes()) == 0) continue;
    value.constant = std::make_shared<const HostTensor>(copied(tensor->type, tensor->dims, tensor->data.get()));
    any = true;
  }
  return any;
}

}  // namespace softneuro::ort
