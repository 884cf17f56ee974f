#include "providers/ort/graph/read_graph.h"

#include <unordered_map>

#include "providers/ort/abi/api.h"

namespace softneuro::ort {
namespace {

using InfoOwner = Owned<OrtTensorTypeAndShapeInfo, fn::ReleaseTensorTypeAndShapeInfo>;

template <typename T>
std::vector<T> read_values(const OrtOpAttr* attribute, int type) {
  size_t bytes = 0;
  // The first call tells the size, with a status because the buffer is too small.
  OrtStatus* status = Runtime::get().function(fn::ReadOpAttr)(attribute, type, nullptr, 0, &bytes);
  if (status != nullptr) call(fn::ReleaseStatus, status);
  std::vector<T> result(bytes / sizeof(T));
  if (bytes > 0) call(fn::ReadOpAttr, attribute, type, result.data(), bytes, &bytes);
  return result;
}

class GraphReader {
 public:
  explicit GraphReader(const OrtGraph* graph) : graph_(graph) {}

  HostGraph read() {
    result_.name = get<const char*>(fn::Graph_GetName, graph_);
    if (const char* path = get<const char*>(fn::Graph_GetModelPath, graph_)) result_.model_path = path;
    result_.is_body = get<const OrtNode*>(fn::Graph_GetParentNode, graph_) != nullptr;
    std::vector<const char*> domains(get<size_t>(fn::Graph_GetNumOperatorSets, graph_));
    std::vector<int64_t> versions(domains.size());
    call(fn::Graph_GetOperatorSets, graph_, domains.data(), versions.data(), domains.size());
    for (size_t i = 0; i < domains.size(); ++i) result_.opsets[domains[i]] = static_cast<int>(versions[i]);
    result_.inputs = values(fn::Graph_GetNumInputs, fn::Graph_GetInputs, graph_);
    std::vector<const OrtNode*> nodes(get<size_t>(fn::Graph_GetNumNodes, graph_));
    call(fn::Graph_GetNodes, graph_, nodes.data(), nodes.size());
    for (const OrtNode* node : nodes) result_.nodes.push_back(read_node(node));
    result_.outputs = values(fn::Graph_GetNumOutputs, fn::Graph_GetOutputs, graph_);
    return std::move(result_);
  }

 private:
  template <typename Count, typename List, typename Owner>
  std::vector<int> values(Count count, List list, const Owner* owner) {
    std::vector<const OrtValueInfo*> infos(get<size_t>(count, owner));
    call(list, owner, infos.data(), infos.size());
    std::vector<int> ids;
    for (const OrtValueInfo* info : infos) ids.push_back(info == nullptr ? -1 : value(info));
    return ids;
  }

  int value(const OrtValueInfo* info) {
    const std::string name = get<const char*>(fn::GetValueInfoName, info);
    if (name.empty()) return -1;
    const auto [found, is_new] = ids_.try_emplace(name, static_cast<int>(result_.values.size()));
    if (is_new) {
      HostValue made;
      made.name = name;
      describe(made, info);
      if (get<bool>(fn::ValueInfo_IsConstantInitializer, info)) made.constant = constant(info);
      result_.values.push_back(std::move(made));
    }
    return found->second;
  }

  static void describe(HostValue& made, const OrtValueInfo* info) {
    const auto* type = get<const OrtTypeInfo*>(fn::GetValueInfoTypeInfo, info);
    if (type == nullptr) return;
    const auto* tensor = get<const OrtTensorTypeAndShapeInfo*>(fn::CastTypeInfoToTensorInfo, type);
    if (tensor == nullptr) return;  // a sequence, a map, an optional
    made.type = ElementType(get<int>(fn::GetTensorElementType, tensor));
    made.has_shape = call(fn::TensorTypeAndShape_HasShape, tensor);
    if (!made.has_shape) return;
    made.dims = dimensions(tensor);
    std::vector<const char*> symbols(made.dims.size());
    call(fn::GetSymbolicDimensions, tensor, symbols.data(), symbols.size());
    for (const char* symbol : symbols) made.symbols.emplace_back(symbol == nullptr ? "" : symbol);
  }

  static std::shared_ptr<const HostTensor> constant(const OrtValueInfo* info) {
    const auto* value = get<const OrtValue*>(fn::ValueInfo_GetInitializerValue, info);
    if (value == nullptr) return nullptr;
    const TensorInfo described = tensor_info(value);
    const auto type = described.type.dtype();
    if (!type) return nullptr;
    const auto* data = get<const void*>(fn::GetTensorData, value);
    return std::make_shared<const HostTensor>(
        HostTensor{*type, described.dims, std::shared_ptr<const void>(data, [](const void*) {})});
  }

  HostNode read_node(const OrtNode* node) {
    HostNode made;
    made.host = node;
    made.name = get<const char*>(fn::Node_GetName, node);
    made.op = get<const char*>(fn::Node_GetOperatorType, node);
    made.domain = get<const char*>(fn::Node_GetDomain, node);
    if (made.domain == "ai.onnx") made.domain.clear();
    made.since_version = get<int>(fn::Node_GetSinceVersion, node);
    if (const char* provider = get<const char*>(fn::Node_GetEpName, node)) {
      if (*provider != 0) made.not_ours = std::string("provider ") + provider + " has taken it";
    }
    made.inputs = values(fn::Node_GetNumInputs, fn::Node_GetInputs, node);
    made.outputs = values(fn::Node_GetNumOutputs, fn::Node_GetOutputs, node);
    made.implicit_inputs = values(fn::Node_GetNumImplicitInputs, fn::Node_GetImplicitInputs, node);
    std::vector<const OrtOpAttr*> attributes(get<size_t>(fn::Node_GetNumAttributes, node));
    call(fn::Node_GetAttributes, node, attributes.data(), attributes.size());
    for (const OrtOpAttr* attribute : attributes) {
      const std::string name = get<const char*>(fn::OpAttr_GetName, attribute);
      if (name == payload_attribute) continue;  // as large as a model, and read by read_bytes()
      made.attributes.emplace(name, read_attribute(attribute));
    }
    return made;
  }

  static OpAttribute read_attribute(const OrtOpAttr* attribute) {
    const int type = get<int>(fn::OpAttr_GetType, attribute);
    size_t bytes = 0;
    switch (type) {
      case attr_int: {
        int64_t value = 0;
        call(fn::ReadOpAttr, attribute, type, &value, sizeof(value), &bytes);
        return value;
      }
      case attr_float: {
        float value = 0;
        call(fn::ReadOpAttr, attribute, type, &value, sizeof(value), &bytes);
        return value;
      }
      case attr_ints:
        return read_integers(attribute);
      case attr_floats:
        return read_values<float>(attribute, type);
      case attr_string:
        return read_text(attribute);
      case attr_tensor: {
        const auto value = create<fn::ReleaseValue, OrtValue>(fn::OpAttr_GetTensorAttributeAsOrtValue, attribute);
        const TensorInfo described = tensor_info(value.get());
        const auto type_of_values = described.type.dtype();
        if (!type_of_values) return std::monostate();
        return copied(*type_of_values, described.dims, get<const void*>(fn::GetTensorData, value.get()));
      }
      default:
        return std::monostate();  // a subgraph, or something nobody here reads
    }
  }

  const OrtGraph* graph_;
  HostGraph result_;
  std::unordered_map<std::string, int> ids_;
};

}  // namespace

std::vector<int64_t> dimensions(const OrtTensorTypeAndShapeInfo* info) {
  std::vector<int64_t> dims(get<size_t>(fn::GetDimensionsCount, info));
  call(fn::GetDimensions, info, dims.data(), dims.size());
  return dims;
}

std::vector<int64_t> read_integers(const OrtOpAttr* attribute) { return read_values<int64_t>(attribute, attr_ints); }

std::string read_text(const OrtOpAttr* attribute) {
  const auto text = read_values<char>(attribute, attr_string);
  std::string value(text.begin(), text.end());
  while (!value.empty() && value.back() == '\0') value.pop_back();
  return value;
}

AlignedBuffer read_bytes(const OrtNode* node, const char* name) {
  const auto* attribute = get<const OrtOpAttr*>(fn::Node_GetAttributeByName, node, name);
  if (attribute == nullptr || get<int>(fn::OpAttr_GetType, attribute) != attr_string) {
    throw Error(std::string("the node has no text ") + name);
  }
  size_t bytes = 0;
  OrtStatus* status = Runtime::get().function(fn::ReadOpAttr)(attribute, attr_string, nullptr, 0, &bytes);
  if (status != nullptr) call(fn::ReleaseStatus, status);
  AlignedBuffer buffer(bytes);
  if (bytes > 0) call(fn::ReadOpAttr, attribute, static_cast<int>(attr_string), buffer.data(), bytes, &bytes);
  return buffer;
}

HostGraph read_graph(const OrtGraph* graph) { return GraphReader(graph).read(); }

void keep_constants(HostGraph& graph) {
  for (HostValue& value : graph.values) {
    if (!value.constant) continue;
    value.constant = std::make_shared<const HostTensor>(
        copied(value.constant->type, value.constant->dims, value.constant->data.get()));
  }
}

std::vector<std::string> node_values(const OrtNode* node, bool outputs) {
  std::vector<const OrtValueInfo*> infos(outputs ? get<size_t>(fn::Node_GetNumOutputs, node)
                                                 : get<size_t>(fn::Node_GetNumInputs, node));
  if (outputs) {
    call(fn::Node_GetOutputs, node, infos.data(), infos.size());
  } else {
    call(fn::Node_GetInputs, node, infos.data(), infos.size());
  }
  std::vector<std::string> names;
  for (const OrtValueInfo* info : infos) {
    names.emplace_back(info == nullptr ? "" : get<const char*>(fn::GetValueInfoName, info));
  }
  return names;
}

TensorInfo tensor_info(const OrtValue* value) {
  const auto info =
      create<fn::ReleaseTensorTypeAndShapeInfo, OrtTensorTypeAndShapeInfo>(fn::GetTensorTypeAndShape, value);
  return {ElementType(get<int>(fn::GetTensorElementType, info.get())), dimensions(info.get())};
}

}  // namespace softneuro::ort
