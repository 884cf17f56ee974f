// The host's graph as plain data: what the runtime tells of it while it compiles, and nothing that dies afterwards.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/error.h"

namespace softneuro::ort {

// Numbers are ONNX's; other element types keep theirs.
enum class ElementType : int { undefined = 0, float32 = 1, int32 = 6, int64 = 7, boolean = 9, float64 = 11 };
size_t element_size(ElementType type);  // bytes; 0 for a type that is not in the list above
std::string element_name(ElementType type);

// A dense constant.
struct HostTensor {
  ElementType type = ElementType::undefined;
  std::vector<int64_t> dims;
  std::shared_ptr<const void> data;

  int64_t elements() const;
  size_t bytes() const { return static_cast<size_t>(elements()) * element_size(type); }
  // Values of integers and bools. Throws Error for another type.
  std::vector<int64_t> integers() const;
  // The one value of a tensor of one element, whatever its type and rank. Throws Error for more elements.
  double number() const;
  const float* f32() const { return static_cast<const float*>(data.get()); }
};
HostTensor tensor_of(std::vector<int64_t> dims, const std::vector<int64_t>& values);
HostTensor tensor_of(std::vector<int64_t> dims, const std::vector<float>& values);
// With a copy of the memory.
HostTensor copied(ElementType type, std::vector<int64_t> dims, const void* data);

using OpAttribute =
    std::variant<int64_t, float, std::string, std::vector<int64_t>, std::vector<float>, HostTensor, std::monostate>;

struct OpValue {
  std::string name;
  ElementType type = ElementType::undefined;
  bool has_shape = false;
  std::vector<int64_t> dims;         // -1: known only at run time
  std::vector<std::string> symbols;  // by axis, empty where there is none
  std::shared_ptr<const HostTensor> constant;
};

struct OpNode {
  std::string name, op, domain;
  int since_version = 0;
  std::vector<int> inputs;  // value ids; -1: left out
  std::vector<int> outputs;
  std::vector<int> implicit_inputs;  // that subgraphs read
  std::map<std::string, OpAttribute, std::less<>> attributes;
  std::string host_provider;        // that has taken the node already
  const void* host = nullptr;       // the runtime's node, valid while it compiles
  std::vector<const void*> merged;  // further ones that this stands for

  const OpAttribute* find(std::string_view name) const;
  // Throw Error for an attribute of another type; return the fallback where there is none.
  int64_t integer(std::string_view name, int64_t fallback) const;
  float real(std::string_view name, float fallback) const;
  std::string text(std::string_view name, std::string_view fallback) const;
  std::vector<int64_t> integers(std::string_view name, std::vector<int64_t> fallback = {}) const;
  bool has_input(size_t index) const { return index < inputs.size() && inputs[index] >= 0; }
};

struct OpGraph {
  std::string name, model_path;
  std::vector<OpValue> values;
  std::vector<OpNode> nodes;  // in topological order
  std::vector<int> inputs, outputs;
  std::map<std::string, int> opsets;  // by domain
  bool is_body = false;               // of a control-flow node

  const OpValue& value(int id) const { return values[static_cast<size_t>(id)]; }
};

}  // namespace softneuro::ort
