#include "providers/ort/graph/host_graph.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <numeric>
#include <set>
#include <type_traits>

#include "base/hash.h"
#include "base/text.h"

namespace softneuro::ort {
namespace {

template <typename T>
HostTensor kept(DType type, std::vector<int64_t> dims, const std::vector<T>& values) {
  auto list = std::make_shared<const std::vector<T>>(values);
  return {type, std::move(dims), std::shared_ptr<const void>(list, list->data())};
}

template <typename T>
const T* as(const HostNode& node, std::string_view name) {
  const OpAttribute* found = node.find(name);
  if (found == nullptr) return nullptr;
  const T* value = std::get_if<T>(found);
  if (value == nullptr)
    throw Error("attribute " + std::string(name) + " has an unexpected type", node.op + " '" + node.name + "'");
  return value;
}

}  // namespace

int64_t HostTensor::elements() const {
  int64_t total = 1;
  for (const int64_t dim : dims) total *= dim;
  return total;
}

std::vector<int64_t> HostTensor::integers() const {
  if (is_real(type)) throw Error("integers are wanted, not " + std::string(dtype_name(type)));
  std::vector<int64_t> values(static_cast<size_t>(elements()));
  with_dtype(type, [&](auto kind) {
    using T = decltype(kind);
    const T* from = static_cast<const T*>(data.get());
    if constexpr (std::is_integral_v<T>) {
      std::copy_n(from, values.size(), values.begin());
    } else {
      std::transform(from, from + values.size(), values.begin(), [](T x) { return element_value(x) != 0; });
    }
  });
  return values;
}

std::vector<float> HostTensor::reals() const {
  std::vector<float> values(static_cast<size_t>(elements()));
  with_dtype(type, [&](auto kind) {
    const auto* from = static_cast<const decltype(kind)*>(data.get());
    for (size_t i = 0; i < values.size(); ++i) values[i] = element_value(from[i]);
  });
  return values;
}

double HostTensor::number() const {
  if (elements() != 1) throw Error("one number is wanted, not " + std::to_string(elements()));
  return is_real(type) ? static_cast<double>(reals()[0]) : static_cast<double>(integers()[0]);
}

HostTensor tensor_of(std::vector<int64_t> dims, const std::vector<int64_t>& values) {
  return kept(DType::int64, std::move(dims), values);
}

HostTensor tensor_of(std::vector<int64_t> dims, const std::vector<float>& values) {
  return kept(DType::float32, std::move(dims), values);
}

HostTensor copied(DType type, std::vector<int64_t> dims, const void* data) {
  HostTensor tensor{type, std::move(dims), nullptr};
  const size_t bytes = tensor.bytes();
  std::shared_ptr<void> memory(::operator new(std::max<size_t>(bytes, 1)), [](void* p) { ::operator delete(p); });
  if (bytes > 0) std::memcpy(memory.get(), data, bytes);
  tensor.data = std::move(memory);
  return tensor;
}

HostTensor in_float32(const HostTensor& tensor) {
  return is_half(tensor.type) ? tensor_of(tensor.dims, tensor.reals()) : tensor;
}

bool is_fixed(const HostValue& value) {
  return value.has_shape && std::all_of(value.dims.begin(), value.dims.end(), [](int64_t dim) { return dim >= 0; });
}

bool is_half(const ElementType& type) { return is_real(type) && type != ElementType(DType::float32); }

bool has_halves(const HostGraph& graph) {
  return std::any_of(graph.values.begin(), graph.values.end(),
                     [](const HostValue& value) { return is_half(value.type); });
}

// A bound that a Clip leaves out is the largest number of the type that it has, in whatever it is computed.
void fill_in_bounds(HostGraph& graph, HostNode& node) {
  if (node.op != "Clip" || !node.domain.empty() || node.since_version < 12 || node.inputs.empty()) return;
  const ElementType type = graph.value(node.inputs[0]).type;
  if (!is_half(type)) return;
  node.inputs.resize(3, -1);
  for (const size_t input : {1, 2}) {
    if (node.has_input(input)) continue;
    node.inputs[input] = static_cast<int>(graph.values.size());
    HostValue& bound = graph.values.emplace_back();
    bound.name = "softneuro bound " + std::to_string(graph.values.size());
    bound.type = type, bound.has_shape = true;
    const float limit = largest(type.known());
    bound.constant = std::make_shared<const HostTensor>(tensor_of({}, std::vector{input == 1 ? -limit : limit}));
  }
}

HostGraph in_float32(const HostGraph& graph) {
  HostGraph wide = graph;
  for (HostNode& node : wide.nodes) fill_in_bounds(wide, node);
  for (HostValue& value : wide.values) {
    if (!is_half(value.type)) continue;
    value.type = DType::float32;
    if (value.constant) value.constant = std::make_shared<const HostTensor>(in_float32(*value.constant));
  }
  for (HostNode& node : wide.nodes) {
    const auto to = node.attributes.find("to");
    if (node.op != "Cast" || to == node.attributes.end()) continue;
    if (is_half(ElementType(static_cast<int>(node.integer("to", 0))))) {
      to->second = static_cast<int64_t>(ElementType(DType::float32).number());
    }
  }
  return wide;
}

const OpAttribute* HostNode::find(std::string_view wanted) const {
  const auto found = attributes.find(wanted);
  return found == attributes.end() ? nullptr : &found->second;
}

int64_t HostNode::integer(std::string_view wanted, int64_t fallback) const {
  const auto* value = as<int64_t>(*this, wanted);
  return value != nullptr ? *value : fallback;
}

float HostNode::real(std::string_view wanted, float fallback) const {
  const auto* value = as<float>(*this, wanted);
  return value != nullptr ? *value : fallback;
}

std::string HostNode::text(std::string_view wanted, std::string_view fallback) const {
  const auto* value = as<std::string>(*this, wanted);
  return value != nullptr ? *value : std::string(fallback);
}

std::vector<int64_t> HostNode::integers(std::string_view wanted, std::vector<int64_t> fallback) const {
  const auto* value = as<std::vector<int64_t>>(*this, wanted);
  return value != nullptr ? *value : fallback;
}

std::string attribute_text(const OpAttribute& attribute) {
  if (const auto* integer = std::get_if<int64_t>(&attribute)) return std::to_string(*integer);
  if (const auto* real = std::get_if<float>(&attribute)) return exact_number(static_cast<double>(*real));
  if (const auto* text = std::get_if<std::string>(&attribute)) return *text;
  if (const auto* tensor = std::get_if<HostTensor>(&attribute)) return bytes_hash(tensor->data.get(), tensor->bytes());
  std::string list;
  const auto add = [&](const std::string& item) { list += (list.empty() ? "" : ":") + item; };
  if (const auto* integers = std::get_if<std::vector<int64_t>>(&attribute)) {
    for (const int64_t value : *integers) add(std::to_string(value));
  }
  if (const auto* reals = std::get_if<std::vector<float>>(&attribute)) {
    for (const float value : *reals) add(exact_number(static_cast<double>(value)));
  }
  return list;
}

bool is_read(const HostGraph& graph, int value) {
  const auto has = [value](const std::vector<int>& ids) {
    return std::find(ids.begin(), ids.end(), value) != ids.end();
  };
  return has(graph.outputs) || std::any_of(graph.nodes.begin(), graph.nodes.end(), [&](const HostNode& node) {
           return has(node.inputs) || has(node.implicit_inputs);
         });
}

std::vector<bool> read_nodes(const HostGraph& graph) {
  const auto at = [](int index) { return static_cast<size_t>(index); };
  std::vector<bool> read(graph.values.size(), false), nodes(graph.nodes.size(), false);
  for (const int id : graph.outputs) {
    if (id >= 0) read[at(id)] = true;
  }
  for (size_t n = graph.nodes.size(); n-- > 0;) {
    const HostNode& node = graph.nodes[n];
    nodes[n] = std::any_of(node.outputs.begin(), node.outputs.end(), [&](int id) { return id >= 0 && read[at(id)]; });
    if (!nodes[n]) continue;
    for (const auto* list : {&node.inputs, &node.implicit_inputs}) {
      for (const int id : *list) {
        if (id >= 0) read[at(id)] = true;
      }
    }
  }
  return nodes;
}

HostGraph subgraph(const HostGraph& graph, const std::vector<int>& nodes) {
  HostGraph part;
  part.name = graph.name, part.model_path = graph.model_path, part.opsets = graph.opsets;
  std::map<int, int> ids;
  std::set<int> made, inputs;
  const auto id_of = [&](int old) {
    if (old < 0) return -1;
    const auto [found, is_new] = ids.try_emplace(old, static_cast<int>(part.values.size()));
    if (is_new) part.values.push_back(graph.value(old));
    return found->second;
  };
  const std::set<int> inside(nodes.begin(), nodes.end());
  std::set<int> wanted(graph.outputs.begin(), graph.outputs.end());
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    if (inside.contains(static_cast<int>(n))) continue;
    wanted.insert(graph.nodes[n].inputs.begin(), graph.nodes[n].inputs.end());
    wanted.insert(graph.nodes[n].implicit_inputs.begin(), graph.nodes[n].implicit_inputs.end());
  }
  for (const int n : nodes) {
    HostNode node = graph.nodes[static_cast<size_t>(n)];
    for (const int input : node.inputs) {
      if (input < 0 || made.contains(input) || graph.value(input).constant || !inputs.insert(input).second) continue;
      part.inputs.push_back(id_of(input));
    }
    made.insert(node.outputs.begin(), node.outputs.end());
    for (const int output : node.outputs) {
      if (output >= 0 && wanted.contains(output)) part.outputs.push_back(id_of(output));
    }
    for (auto* list : {&node.inputs, &node.outputs, &node.implicit_inputs}) {
      std::transform(list->begin(), list->end(), list->begin(), id_of);
    }
    part.nodes.push_back(std::move(node));
  }
  return part;
}

HostGraph tidied(HostGraph graph) {
  const std::vector<bool> read = read_nodes(graph);
  std::vector<HostNode> kept;
  for (size_t n = 0; n < read.size(); ++n) {
    if (read[n]) kept.push_back(std::move(graph.nodes[n]));
  }
  graph.nodes = std::move(kept);
  std::vector<int> all(graph.nodes.size());
  std::iota(all.begin(), all.end(), 0);
  return subgraph(graph, all);
}

}  // namespace softneuro::ort
