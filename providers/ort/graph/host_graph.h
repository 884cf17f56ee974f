// The host's graph as plain data: what the runtime tells of it while it compiles, and nothing that dies afterwards.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/blob.h"
#include "base/error.h"
#include "providers/ort/graph/element_types.h"

namespace softneuro::ort {

// A dense constant.
struct HostTensor {
  DType type = DType::float32;
  std::vector<int64_t> dims;
  std::shared_ptr<const void> data;

  int64_t elements() const;
  size_t bytes() const { return dtype_bytes(type, elements()); }
  // Values of integers and bools. Throws Error for another type.
  std::vector<int64_t> integers() const;
  // The one value of a tensor of one element, whatever its type and rank. Throws Error for more elements.
  double number() const;
  // As reals; integers beyond 2^24 lose digits.
  std::vector<float> reals() const;
};
HostTensor tensor_of(std::vector<int64_t> dims, const std::vector<int64_t>& values);
HostTensor tensor_of(std::vector<int64_t> dims, const std::vector<float>& values);
// With a copy of the memory.
HostTensor copied(DType type, std::vector<int64_t> dims, const void* data);
// Shorter reals as float32; others as they are.
HostTensor in_float32(const HostTensor& tensor);

using OpAttribute =
    std::variant<int64_t, float, std::string, std::vector<int64_t>, std::vector<float>, HostTensor, std::monostate>;

// All that results depend on; nothing of subgraphs and the like, which are not read.
std::string attribute_text(const OpAttribute& attribute);

struct HostValue {
  std::string name;
  ElementType type;
  bool has_shape = false;
  std::vector<int64_t> dims;         // -1: known only at run time
  std::vector<std::string> symbols;  // by axis, empty where there is none
  std::shared_ptr<const HostTensor> constant;
  bool sized = false;  // integers that follow from shapes and decide others, as a region's input too
  std::shared_ptr<const Quantization> grid;  // what bytes mean that flow between Q and DQ: see quantized_values.h
};

struct HostNode {
  std::string name, op, domain;
  int since_version = 0;
  std::vector<int> inputs;  // value ids; -1: left out
  std::vector<int> outputs;
  std::vector<int> implicit_inputs;  // that subgraphs read
  std::map<std::string, OpAttribute, std::less<>> attributes;
  std::string not_ours;        // why the host keeps the node, whatever it is; empty if it need not
  const void* host = nullptr;  // the runtime's node, valid while it compiles
  bool is_step = false;        // the host runs it inside a region

  const OpAttribute* find(std::string_view name) const;
  // Throw Error for an attribute of another type; return the fallback where there is none.
  int64_t integer(std::string_view name, int64_t fallback) const;
  float real(std::string_view name, float fallback) const;
  std::string text(std::string_view name, std::string_view fallback) const;
  std::vector<int64_t> integers(std::string_view name, std::vector<int64_t> fallback = {}) const;
  bool has_input(size_t index) const { return index < inputs.size() && inputs[index] >= 0; }
};

struct HostGraph {
  std::string name, model_path;
  std::vector<HostValue> values;
  std::vector<HostNode> nodes;  // in topological order
  std::vector<int> inputs, outputs;
  std::map<std::string, int> opsets;  // by domain
  bool is_body = false;               // of a control-flow node

  const HostValue& value(int id) const { return values[static_cast<size_t>(id)]; }
};

// Whether anything reads a value, a subgraph or the caller too.
bool is_read(const HostGraph& graph, int value);
// By node: whether an output of the graph depends on it.
std::vector<bool> read_nodes(const HostGraph& graph);
// The nodes as a graph of their own: inputs and outputs in order of first use.
HostGraph subgraph(const HostGraph& graph, const std::vector<int>& nodes);
// The graph without nodes that no output depends on: the same one however the runtime has numbered its values.
HostGraph tidied(HostGraph graph);

// One input as a run gives it.
struct RunInput {
  DType type = DType::float32;
  std::span<const int64_t> dims;
  const void* data = nullptr;  // null: only the shape is known
};

// Whether every size is known ahead.
bool is_fixed(const HostValue& value);
bool is_half(const ElementType& type);
bool has_halves(const HostGraph& graph);
// The graph that computes in float32 what this one computes in shorter reals.
HostGraph in_float32(const HostGraph& graph);

}  // namespace softneuro::ort
