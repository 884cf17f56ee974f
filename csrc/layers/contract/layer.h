// What is computed: a type, its params, its constant weights. Never how.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/tensor.h"
#include "kernels/activation.h"
#include "layers/contract/attrs.h"
#include "layers/weights/constant_data.h"

namespace softneuro {

// What a layer has absorbed: out = quantized(activation(layer(inputs) + residual)). A residual is one more blob input,
// the last one, of the output's shape. Routines of conv2d, conv1d, linear and binary accept both; others as their check
// says. Passes absorb these two. What quantizes is the layer `quantize`, or a fusion of it with the layer before it.
struct PostOps {
  bool residual = false;
  Activation activation;
  std::shared_ptr<const Quantization> quantize = nullptr;  // per tensor; the output has these parameters
  // The layer's own result, before the residual is added: only in fusions, for routines that say that they do it.
  std::shared_ptr<const Quantization> quantize_first = nullptr;

  bool empty() const { return !residual && activation.kind == ActivationKind::none && quantize == nullptr; }
  // Without the quantization's values: the output's description has them.
  std::string str() const;
};

struct HostOp;

struct Layer {
  std::string name;  // the host's name, for messages; no part of any hash
  std::string type;
  Attrs attrs;
  std::vector<std::pair<std::string, Constant>> weights;  // by role: "weight", "bias", ...
  PostOps post;
  std::vector<int> inputs;  // blob ids in the graph
  std::vector<int> outputs;
  std::shared_ptr<const HostOp> host;  // of type `host` only: what the front door calls

  int output() const { return outputs.front(); }

  const Constant* find_weight(std::string_view role) const;
  // Throws Error naming the role.
  const Constant& weight(std::string_view role) const;
  void set_weight(std::string_view role, Constant value);  // replaces; a null value removes
  // Inputs without the residual.
  int main_inputs() const { return static_cast<int>(inputs.size()) - (post.residual ? 1 : 0); }
};

// A layer's outputs; most have one.
class OutputDescs : public std::vector<TensorDesc> {
 public:
  using std::vector<TensorDesc>::vector;
  OutputDescs(TensorDesc desc) : std::vector<TensorDesc>{std::move(desc)} {}
};

// Layer with the blobs around it: what a routine is asked about. ProblemClass is what of it costs are keyed by.
struct Problem {
  const Layer* layer = nullptr;
  std::vector<TensorDesc> in;
  OutputDescs outs;
  int threads = 1;  // that run() may use at once

  const TensorDesc& out() const { return outs.front(); }
  // Canonical text of everything that results depend on but for the weights' values: type, attributes, post-ops, blobs,
  // scales, what is special about weights. No names.
  std::string exact_signature() const;
};

// A row-major double tensor of the references.
struct RefTensor {
  Shape shape;
  double* data = nullptr;
};

class RoutineList;

// What a layer type takes.
enum class Takes : unsigned char {
  reals,      // a quantized blob's values, too; outputs are not quantized
  selecting,  // reals; `infer` says of outputs whether their values are some of a quantized input's
  moving,     // anything: values are passed on as they are
  any,        // anything: `infer` looks after it
};

// A layer type. Functions throw Error about the offending value; the graph adds the layer's name.
struct LayerDef {
  const char* type;
  // Validates params, weights and input shapes, and returns the outputs'. Called without the residual.
  OutputDescs (*infer)(const Layer& layer, std::span<const TensorDesc> in);
  // The naive truth in float64, without post-ops: every routine is tested against it. Doubles as documentation.
  void (*reference)(const Layer& layer, std::span<const RefTensor> in, std::span<const RefTensor> outs);
  void (*add_routines)(RoutineList& list);
  Takes takes = Takes::reals;
  // The input whose memory an output is, being what becomes of it: a cache that is written to in place. -1: none. No
  // other layer may read that input afterwards. Null: for no output.
  int (*updates)(const Layer& layer, int output) = nullptr;
};

// LayerDef::reference of a layer with one output.
template <void (*reference)(const Layer&, std::span<const RefTensor>, RefTensor)>
void one_output(const Layer& layer, std::span<const RefTensor> in, std::span<const RefTensor> outs) {
  reference(layer, in, outs[0]);
}

// LayerDef::infer, with what the type takes looked after. `in` is without the residual.
OutputDescs infer_outputs(const LayerDef& def, const Layer& layer, std::span<const TensorDesc> in);
// The input whose memory an output is (LayerDef::updates).
int updated_input(const LayerDef& def, const Layer& layer, int output);

// Reference of the whole layer, post-ops included; these concern the first output.
void run_reference(const LayerDef& def, const Layer& layer, std::span<const RefTensor> in,
                   std::span<const RefTensor> outs);
double reference_activation(const Activation& activation, double x);
// The real that the nearest step stands for, in float32 as hosts have it; of NaN the least one.
double reference_quantized(const Quantization& quantization, double x);
// By its name in kernels/activation.h. Throws Error.
ActivationKind parse_activation(std::string_view name);
// A weight's values for a reference.
std::vector<double> reference_weight(const Layer& layer, std::string_view role);

}  // namespace softneuro
