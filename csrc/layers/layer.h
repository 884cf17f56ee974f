// What is computed: a type, its params, its constant weights. Never how.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/tensor.h"
#include "kernels/activation.h"
#include "layers/attrs.h"
#include "layers/constant_data.h"

namespace softneuro {

// What a pass has absorbed into a layer: out = activation(layer(inputs) + residual). A residual is one more blob input,
// the last one, of the output's shape. Routines of conv2d, conv1d, linear and binary accept both; others as their check
// says.
struct PostOps {
  bool residual = false;
  Activation activation;

  bool empty() const { return !residual && activation.kind == ActivationKind::none; }
  std::string str() const;
  friend bool operator==(const PostOps&, const PostOps&) = default;
};

// Every layer has exactly one output blob.
struct Layer {
  std::string name;  // the host's name, for messages; no part of any hash
  std::string type;
  Attrs attrs;
  std::vector<std::pair<std::string, Constant>> weights;  // by role: "weight", "bias", ...
  PostOps post;
  std::vector<int> inputs;  // blob ids in the graph
  int output = -1;

  const Constant* find_weight(std::string_view role) const;
  // Throws Error naming the role.
  const Constant& weight(std::string_view role) const;
  void set_weight(std::string_view role, Constant value);  // replaces; a null value removes
  // Inputs without the residual.
  int main_inputs() const { return static_cast<int>(inputs.size()) - (post.residual ? 1 : 0); }
};

// Layer with the shapes around it: what a routine is asked about and a cost is keyed by.
struct Problem {
  const Layer* layer = nullptr;
  std::vector<TensorDesc> in;
  TensorDesc out;
  int threads = 1;  // that run() may use at once

  // Canonical text of type, attributes, weight shapes, post-ops and blob shapes; neither weight values nor names.
  std::string signature() const;
};

// A row-major double tensor of the references.
struct RefTensor {
  Shape shape;
  double* data = nullptr;
};

class RoutineList;

// A layer type. Functions throw Error about the offending value; the graph adds the layer's name.
struct LayerDef {
  const char* type;
  // Validates params, weights and input shapes, and returns the output's. Called without the residual.
  TensorDesc (*infer)(const Layer& layer, std::span<const TensorDesc> in);
  // The naive truth in float64, without post-ops: every routine is tested against it. Doubles as documentation.
  void (*reference)(const Layer& layer, std::span<const RefTensor> in, RefTensor out);
  void (*add_routines)(RoutineList& list);
};

// Reference of the whole layer, post-ops included.
void run_reference(const LayerDef& def, const Layer& layer, std::span<const RefTensor> in, RefTensor out);
double reference_activation(const Activation& activation, double x);
// By its name in kernels/activation.h. Throws Error.
ActivationKind parse_activation(std::string_view name);
// A weight's values for a reference.
std::vector<double> reference_weight(const Layer& layer, std::string_view role);

}  // namespace softneuro
