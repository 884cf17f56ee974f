#include "providers/ort/host/host_region.h"

#include <algorithm>
#include <set>

namespace softneuro::ort {
namespace {

using MemoryInfo = Owned<OrtMemoryInfo, fn::ReleaseMemoryInfo>;
using TypeInfo = Owned<OrtTypeInfo, fn::ReleaseTypeInfo>;
using ValueInfo = Owned<OrtValueInfo, fn::ReleaseValueInfo>;
using AttributeOwner = Owned<OrtOpAttr, fn::ReleaseOpAttr>;

// Constants get names of their own here. The runtime has optimised the model that they come from, and does it again:
// for constants that it makes then it takes names that its first pass has given to others, and fails.
std::string name_of(const HostGraph& ops, int id) {
  if (id < 0) return {};
  const HostValue& value = ops.value(id);
  const bool is_output = std::find(ops.outputs.begin(), ops.outputs.end(), id) != ops.outputs.end();
  return value.constant && !is_output ? "softneuro constant " + std::to_string(id) : value.name;
}

ValueInfo value_info(const HostValue& value) {
  if (!value.has_shape) throw Error("the rank of '" + value.name + "' is unknown");
  const auto shape =
      create<fn::ReleaseTensorTypeAndShapeInfo, OrtTensorTypeAndShapeInfo>(fn::CreateTensorTypeAndShapeInfo);
  call(fn::SetTensorElementType, shape.get(), value.type.number());
  call(fn::SetDimensions, shape.get(), value.dims.data(), value.dims.size());
  std::vector<const char*> symbols;
  for (const std::string& symbol : value.symbols) symbols.push_back(symbol.c_str());
  if (symbols.size() == value.dims.size()) {
    call(fn::SetSymbolicDimensions, shape.get(), symbols.data(), symbols.size());
  }
  const auto type = create<fn::ReleaseTypeInfo, OrtTypeInfo>(fn::CreateTensorTypeInfo, shape.get());
  return create<fn::ReleaseValueInfo, OrtValueInfo>(fn::CreateValueInfo, value.name.c_str(), type.get());
}

AttributeOwner attribute(const std::string& name, const OpAttribute& value) {
  const auto make = [&](const void* data, size_t count, int type) {
    return create<fn::ReleaseOpAttr, OrtOpAttr>(fn::CreateOpAttr, name.c_str(), data, static_cast<int>(count), type);
  };
  if (const auto* integer = std::get_if<int64_t>(&value)) return make(integer, 1, attr_int);
  if (const auto* real = std::get_if<float>(&value)) return make(real, 1, attr_float);
  if (const auto* text = std::get_if<std::string>(&value)) return make(text->data(), text->size(), attr_string);
  if (const auto* list = std::get_if<std::vector<int64_t>>(&value)) return make(list->data(), list->size(), attr_ints);
  if (const auto* list = std::get_if<std::vector<float>>(&value)) return make(list->data(), list->size(), attr_floats);
  throw Error("attribute '" + name + "' has a type that cannot be copied");
}

Owned<OrtNode, fn::ReleaseNode> make_node(const HostGraph& ops, const HostNode& node) {
  std::vector<std::string> names;
  for (const auto* ids : {&node.inputs, &node.outputs}) {
    for (const int id : *ids) names.push_back(name_of(ops, id));
  }
  std::vector<const char*> inputs, outputs;
  for (const std::string& name : names) {
    (inputs.size() < node.inputs.size() ? inputs : outputs).push_back(name.c_str());
  }
  std::vector<AttributeOwner> owners;
  for (const auto& [name, value] : node.attributes) owners.push_back(attribute(name, value));
  std::vector<OrtOpAttr*> attributes;
  for (const AttributeOwner& owner : owners) attributes.push_back(owner.get());
  auto made = create<fn::ReleaseNode, OrtNode>(fn::CreateNode, node.op.c_str(), node.domain.c_str(), node.name.c_str(),
                                               inputs.data(), inputs.size(), outputs.data(), outputs.size(),
                                               attributes.data(), attributes.size());
  for (AttributeOwner& owner : owners) owner.release();  // the node has them now
  return made;
}

Owned<OrtGraph, fn::ReleaseGraph> make_graph(const HostGraph& ops) {
  auto graph = create<fn::ReleaseGraph, OrtGraph>(fn::CreateGraph);
  const auto infos = [&](const std::vector<int>& ids, auto set) {
    std::vector<ValueInfo> owners;
    for (const int id : ids) owners.push_back(value_info(ops.value(id)));
    std::vector<OrtValueInfo*> list;
    for (const ValueInfo& owner : owners) list.push_back(owner.get());
    call(set, graph.get(), list.data(), list.size());
    for (ValueInfo& owner : owners) owner.release();
  };
  infos(ops.inputs, fn::SetGraphInputs);
  infos(ops.outputs, fn::SetGraphOutputs);
  std::set<int> used;
  for (const HostNode& node : ops.nodes) used.insert(node.inputs.begin(), node.inputs.end());
  used.insert(ops.outputs.begin(), ops.outputs.end());
  constexpr size_t small = 128;  // bytes; the runtime wants to look into small initializers, so it gets a copy
  for (const int id : used) {
    if (id < 0 || !ops.value(id).constant) continue;
    const HostTensor& tensor = *ops.value(id).constant;
    ValueOwner value;
    const bool outside = tensor.bytes() >= small;
    if (outside) {
      value = tensor_over(tensor.data.get(), tensor.type, tensor.dims);
    } else {
      auto* allocator = get<OrtAllocator*>(fn::GetAllocatorWithDefaultOptions);
      value = create<fn::ReleaseValue, OrtValue>(fn::CreateTensorAsOrtValue, allocator, tensor.dims.data(),
                                                 tensor.dims.size(), ElementType(tensor.type).number());
      auto* to = static_cast<char*>(get<void*>(fn::GetTensorMutableData, value.get()));
      std::copy_n(static_cast<const char*>(tensor.data.get()), tensor.bytes(), to);
    }
    call(fn::AddInitializerToGraph, graph.get(), name_of(ops, id).c_str(), value.release(), outside);
  }
  for (const HostNode& node : ops.nodes) call(fn::AddNodeToGraph, graph.get(), make_node(ops, node).release());
  return graph;
}

}  // namespace

ValueOwner tensor_over(const void* data, DType type, std::span<const int64_t> dims) {
  const auto memory =
      create<fn::ReleaseMemoryInfo, OrtMemoryInfo>(fn::CreateCpuMemoryInfo, allocator_device, memory_default);
  int64_t elements = 1;
  for (const int64_t dim : dims) elements *= dim;
  return create<fn::ReleaseValue, OrtValue>(fn::CreateTensorWithDataAsOrtValue, memory.get(), const_cast<void*>(data),
                                            dtype_bytes(type, elements), dims.data(), dims.size(),
                                            ElementType(type).number());
}

std::map<std::string, std::string> shared_entries(const std::map<std::string, std::string>& entries) {
  std::map<std::string, std::string> shared;
  for (const char* key :
       {"session.disable_quant_qdq", "session.enable_quant_qdq_cleanup", "session.qdqisint8allowed",
        "session.x64quantprecision", "session.set_denormal_as_zero", "mlas.enable_gemm_fastmath_arm64_bfloat16"}) {
    if (const auto found = entries.find(key); found != entries.end()) shared.insert(*found);
  }
  return shared;
}

struct HostRegion::State {
  Owned<OrtEnv, fn::ReleaseEnv> env;
  Owned<OrtSession, fn::ReleaseSession> session;
  std::vector<std::string> names;
  std::vector<const char*> inputs, outputs;
};

HostRegion::HostRegion(const HostGraph& ops, const Settings& settings) : state_(std::make_unique<State>()) {
  for (const auto* ids : {&ops.inputs, &ops.outputs}) {
    for (const int id : *ids) state_->names.push_back(ops.value(id).name);
  }
  for (size_t i = 0; i < state_->names.size(); ++i) {
    (i < ops.inputs.size() ? state_->inputs : state_->outputs).push_back(state_->names[i].c_str());
  }
  state_->env = create<fn::ReleaseEnv, OrtEnv>(fn::CreateEnv, log_warning_level, "softneuro");
  const auto options =
      settings.base == nullptr
          ? create<fn::ReleaseSessionOptions, OrtSessionOptions>(fn::CreateSessionOptions)
          : create<fn::ReleaseSessionOptions, OrtSessionOptions>(fn::CloneSessionOptions, settings.base);
  call(fn::SetIntraOpNumThreads, options.get(), settings.threads);
  call(fn::SetSessionLogSeverityLevel, options.get(), settings.step ? log_fatal_level : log_error_level);
  if (settings.plain) call(fn::SetSessionGraphOptimizationLevel, options.get(), 0);
  if (settings.open) call(fn::DisableMemPattern, options.get());
  if (settings.step) call(fn::DisableCpuMemArena, options.get());
  if (settings.base != nullptr) {
    call(fn::DisableProfiling, options.get());
    call(fn::SetOptimizedModelFilePath, options.get(), "");
  } else {
    call(fn::AddSessionConfigEntry, options.get(), "session.intra_op.allow_spinning", settings.spin ? "1" : "0");
    for (const auto& [key, value] : settings.entries) {
      call(fn::AddSessionConfigEntry, options.get(), key.c_str(), value.c_str());
    }
    // Between runs the cores belong to whoever is compared with it.
    call(fn::AddSessionConfigEntry, options.get(), "session.force_spinning_stop", "1");
  }
  std::vector<const char*> domains;
  std::vector<int> versions;
  for (const auto& [domain, version] : ops.opsets) {
    domains.push_back(domain.c_str());
    versions.push_back(version);
  }
  const auto model =
      create<fn::ReleaseModel, OrtModel>(fn::CreateModel, domains.data(), versions.data(), domains.size());
  call(fn::AddGraphToModel, model.get(), make_graph(ops).release());
  state_->session =
      create<fn::ReleaseSession, OrtSession>(fn::CreateSessionFromModel, state_->env.get(), model.get(), options.get());
}

HostRegion::~HostRegion() = default;

std::vector<ValueOwner> HostRegion::run(std::span<const OrtValue* const> inputs) const {
  std::vector<OrtValue*> values(state_->outputs.size(), nullptr);
  run_session(inputs, values.data());
  std::vector<ValueOwner> owners;
  for (OrtValue* value : values) owners.emplace_back(value);
  return owners;
}

void HostRegion::run(std::span<const OrtValue* const> inputs, std::span<OrtValue* const> outputs) const {
  std::vector<OrtValue*> values(outputs.begin(), outputs.end());
  run_session(inputs, values.data());
}

void HostRegion::run_session(std::span<const OrtValue* const> inputs, OrtValue** outputs) const {
  call(fn::Run, state_->session.get(), nullptr, state_->inputs.data(), inputs.data(), inputs.size(),
       state_->outputs.data(), state_->outputs.size(), outputs);
}

TensorInfo HostRegion::output(size_t index) const {
  const auto type =
      create<fn::ReleaseTypeInfo, OrtTypeInfo>(fn::SessionGetOutputTypeInfo, state_->session.get(), index);
  const auto* tensor = get<const OrtTensorTypeAndShapeInfo*>(fn::CastTypeInfoToTensorInfo, type.get());
  if (tensor == nullptr) throw Error("output " + std::to_string(index) + " is no tensor");
  return {ElementType(get<int>(fn::GetTensorElementType, tensor)), dimensions(tensor)};
}

}  // namespace softneuro::ort
