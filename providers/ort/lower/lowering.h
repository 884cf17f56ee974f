// From the host's ops and concrete shapes to a core graph. The ops themselves are in ops/.
#pragma once

#include <functional>
#include <initializer_list>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "graph/graph.h"
#include "providers/ort/graph/host_graph.h"
#include "providers/ort/lower/quantized_values.h"

namespace softneuro::ort {

struct OpEntry;

// What a region is given at one call: a tensor's shape, or the values of a tensor of sizes.
struct GivenInput {
  Shape shape;
  std::optional<HostTensor> known;
};

// What a region returns: an output of the core graph, or a tensor that follows from the shapes alone.
struct GivenOutput {
  int output = -1;
  Shape shape;  // the host's, of the same elements in the same order
  HostTensor known;
};

struct Lowered {
  Graph graph;
  std::vector<int> inputs;  // which of the region's inputs are the graph's
  std::vector<GivenOutput> outputs;
};

// Constants of the ops as layers take them, by the values that they come from: what is known of their content is found
// out once for all shapes.
using WeightConstants = std::map<std::pair<std::string, std::vector<int>>, Constant>;

class Lowering {
 public:
  using AttrList = std::initializer_list<std::pair<std::string_view, AttrValue>>;
  using Weights = std::vector<std::pair<std::string, Constant>>;

  // `threads`: of steps that the host runs; 0: there are none. `constants` grows.
  Lowering(const HostGraph& ops, int threads, WeightConstants& constants)
      : ops_(ops), threads_(threads), constants_(constants), values_(ops.values.size()) {}
  // Throws Error, naming the op, for what the layers cannot do with these shapes.
  Lowered run(std::span<const GivenInput> inputs);

  const HostGraph& ops() const { return ops_; }
  // What the ops use, of the node at hand.
  const HostNode& node() const { return *node_; }
  bool has(size_t input) const { return node_->has_input(input); }
  // Whether a value follows from constants and shapes alone.
  bool is_known(size_t input) const { return value(input).known || value(input).constant; }
  // With what the model dequantizes as reals.
  const HostTensor& known(size_t input) const;
  // Known integers of an input; the attribute of that name if there is no such input; else the fallback.
  std::vector<int64_t> integers(size_t input, std::string_view attribute, std::vector<int64_t> fallback = {}) const;
  Shape shape(size_t input) const;
  DType type(size_t input) const { return described(node_->inputs[input]).type.known(); }
  int rank(size_t input) const { return shape(input).rank(); }
  // A non-negative axis. Throws Error if it is outside.
  int64_t axis(int64_t given, int rank) const;
  // The blob of an input; of something known, a constant layer.
  int blob(size_t input);
  // A known real input as a layer's weight.
  Constant weight(size_t input);
  // Dequantizes a constant input.
  Constant dequantized(const QuantizedInput& input);
  // The constant is made once for these values and `what`, which names all else that decides it, attributes included.
  Constant kept(std::string what, std::vector<int> values, const std::function<Constant()>& make);
  // Values that the graph does not have, for an op that stands for the node at hand; such an output means the same as
  // the node's own.
  int added_value(Constant constant);
  int added_value(int blob);
  int added_output();
  void convert_as(const HostNode& node);
  // The blob of a value that has been computed.
  int blob_of(int id);

  // Adds a layer named after the node and returns its blob.
  int add(std::string_view type, std::vector<int> inputs, AttrList attributes = {}, Weights weights = {});
  int add(Layer layer, std::vector<int> inputs);
  int reshape(int blob, const Shape& shape);
  int transpose(int blob, const std::vector<int64_t>& perm);
  Shape shape_of(int blob) const { return desc(blob).shape; }
  const TensorDesc& desc(int blob) const { return result_.graph.blob(blob).desc; }
  // What bytes of the node's output mean; null: they are no steps.
  const Quantization* grid() const { return described(node_->outputs[0]).grid.get(); }
  // The real that a number of the output's type stands for.
  float real_of(double number) const;
  // Quantized, if the output's bytes are.
  void set(int blob, size_t output = 0);
  void set(HostTensor known, size_t output = 0);
  void set(Constant constant, size_t output = 0);

 private:
  struct Place {
    int blob = -1;
    std::optional<HostTensor> known;
    Constant constant = nullptr;  // that the model dequantizes
  };
  const Place& value(size_t input) const;
  const HostValue& described(int id) const;
  std::string name() const;
  int add_input(const HostValue& value, const Shape& shape);
  int quantized(int blob, const std::shared_ptr<const Quantization>& grid, const std::string& name);
  int added(const Shape& shape, Place place);
  Constant constant(int id, const HostTensor& known);
  void check_shape(int id, const Shape& shape) const;

  void convert(const OpEntry& entry);
  void run_by_host();
  std::vector<bool> wanted_values() const;

  const HostGraph& ops_;
  int threads_;
  WeightConstants& constants_;
  std::vector<Place> values_;
  std::vector<HostValue> added_;  // beside the graph's: see added_value()
  const HostNode* node_ = nullptr;
  Lowered result_;
};

std::vector<int64_t> to_list(const Shape& shape);
// A known tensor, keeping its memory alive.
Constant constant_of(const HostTensor& tensor);

}  // namespace softneuro::ort
