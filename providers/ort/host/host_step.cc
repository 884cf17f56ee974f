#include "providers/ort/host/host_step.h"

#include <algorithm>
#include <map>
#include <memory>

#include "base/hash.h"
#include "base/text.h"
#include "providers/ort/abi/status.h"
#include "providers/ort/host/host_region.h"

namespace softneuro::ort {
namespace {

// Below so many elements the host's ops do not share their work.
constexpr int64_t elements_of_one_thread = int64_t{1} << 14;
constexpr int64_t open_size = 16;  // stands for a size that is not known yet

bool is_pure(const HostNode& node) {
  static constexpr std::string_view random[] = {"Bernoulli", "Dropout", "Multinomial"};
  return !node.op.starts_with("Random") && node.implicit_inputs.empty() &&
         std::find(std::begin(random), std::end(random), node.op) == std::end(random);
}

// The node as a graph of its own, in float32.
struct Alone {
  HostGraph graph;
  std::vector<size_t> inputs;  // by the graph's: which of the node's
  std::vector<int> outputs;    // by the graph's: value id where the node comes from
  std::string text;            // all that results depend on
};

Alone alone(const HostGraph& from, const HostNode& node, std::span<const StepInput> inputs,
            const std::vector<bool>& wanted) {
  Alone made;
  HostGraph& graph = made.graph;
  graph.opsets = from.opsets;
  HostNode copy = node;
  made.text = node.op + " " + std::to_string(node.since_version);
  for (const auto& [name, value] : node.attributes) made.text += " " + name + "=" + attribute_text(value);
  std::map<int, int> ids;
  const auto id_of = [&](int old) {
    const auto [found, is_new] = ids.try_emplace(old, static_cast<int>(graph.values.size()));
    if (is_new) {
      HostValue& value = graph.values.emplace_back(from.value(old));
      value.constant = nullptr;
      value.symbols.clear();
    }
    return std::pair(found->second, is_new);
  };
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    made.text += " (";
    if (node.inputs[i] < 0) continue;
    const auto [id, is_new] = id_of(node.inputs[i]);
    copy.inputs[i] = id;
    HostValue& value = graph.values[static_cast<size_t>(id)];
    made.text += std::to_string(id) + " ";
    made.text += dtype_name(is_half(value.type) ? DType::float32 : value.type.known());
    if (inputs[i].known) {
      value.constant = std::make_shared<const HostTensor>(*inputs[i].known);
      value.dims = inputs[i].known->dims;
      made.text += " " + Shape(value.dims).str() + bytes_hash(value.constant->data.get(), value.constant->bytes());
    } else if (is_new) {
      value.dims.assign(inputs[i].shape.begin(), inputs[i].shape.end());
      graph.inputs.push_back(id);
      made.inputs.push_back(i);
    }
  }
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    const int old = node.outputs[i];
    if (old < 0) continue;
    const int id = id_of(old).first;
    copy.outputs[i] = id;
    if (!wanted[static_cast<size_t>(old)]) continue;
    made.text += " " + std::to_string(i);
    std::fill(graph.values[static_cast<size_t>(id)].dims.begin(), graph.values[static_cast<size_t>(id)].dims.end(), -1);
    graph.outputs.push_back(id);
    made.outputs.push_back(old);
  }
  graph.nodes.push_back(std::move(copy));
  graph = in_float32(graph);
  return made;
}

// A session with the graph that it borrows constants from.
struct Step {
  Step(HostGraph ops, int threads) : graph(std::move(ops)), session(graph, {.threads = threads, .step = true}) {}

  void run(std::span<const TensorView> in, std::span<const TensorView> outs) const {
    injected_failure("Step");
    const auto tensor = [](const TensorView& view) {
      return tensor_over(view.data, view.schema.dtype, std::span(view.shape.begin(), view.shape.end()));
    };
    std::vector<ValueOwner> owners;
    std::vector<const OrtValue*> given;
    std::vector<OrtValue*> wanted;
    for (const TensorView& view : in) given.push_back(owners.emplace_back(tensor(view)).get());
    for (const TensorView& view : outs) wanted.push_back(owners.emplace_back(tensor(view)).get());
    session.run(given, wanted);
  }

  HostGraph graph;
  HostRegion session;
};

}  // namespace

Refusal may_be_step(const HostGraph& graph, const HostNode& node) {
  if (!node.domain.empty()) return "it is not one of ONNX's own ops";
  if (!is_pure(node)) return "its results depend on more than its inputs";
  if (node.op == "QuantizeLinear" || node.op == "DequantizeLinear")
    return "the host computes it together with its neighbours";
  for (const auto& [name, value] : node.attributes) {
    if (std::holds_alternative<std::monostate>(value) || std::holds_alternative<HostTensor>(value)) {
      return "its attribute " + name + " cannot be copied";
    }
  }
  bool flows = false;
  for (const auto* ids : {&node.inputs, &node.outputs}) {
    for (const int id : *ids) {
      if (id < 0) continue;
      const HostValue& value = graph.value(id);
      if (!value.type.dtype()) return "'" + value.name + "' is " + value.type.name();
      if (value.grid) return "'" + value.name + "' has bytes with a scale";
      if (!value.has_shape) return "the rank of '" + value.name + "' is unknown";
      if (value.dims.size() > static_cast<size_t>(Shape::max_rank)) return "'" + value.name + "' has rank above 8";
      if (std::find(value.dims.begin(), value.dims.end(), 0) != value.dims.end())
        return "'" + value.name + "' is empty";
      flows = flows || (ids == &node.inputs && !value.constant && !value.sized);
    }
  }
  return flows ? Refusal() : Refusal("its operands are constant");
}

HostStep make_step(const HostGraph& graph, const HostNode& node, std::span<const StepInput> inputs,
                   const std::vector<bool>& wanted, int threads) {
  Alone made = alone(graph, node, inputs, wanted);
  if (made.outputs.empty()) throw Error("none of its outputs is read");
  int64_t elements = 0;
  for (const StepInput& input : inputs) elements = std::max(elements, input.shape.elements());
  const auto step =
      std::make_shared<const Step>(std::move(made.graph), elements < elements_of_one_thread ? 1 : threads);
  HostStep result{{}, made.outputs, node.op + " " + content_hash(made.text)};
  for (size_t i = 0; i < made.outputs.size(); ++i) {
    const TensorInfo info = step->session.output(i);
    if (std::any_of(info.dims.begin(), info.dims.end(), [](int64_t dim) { return dim <= 0; })) {
      throw Error("its output's shape does not follow from its inputs' shapes");
    }
    result.op.outs.push_back(desc_of(Shape(info.dims), info.type.known()));
  }
  result.op.run = [step](std::span<const TensorView> in, std::span<const TensorView> outs) { step->run(in, outs); };
  return result;
}

Refusal check_step(const HostGraph& graph, const HostNode& node) {
  std::vector<StepInput> inputs;
  for (const int id : node.inputs) {
    StepInput& input = inputs.emplace_back();
    if (id < 0) continue;
    const HostValue& value = graph.value(id);
    if (value.sized) return "'" + value.name + "' follows from shapes that are open";
    if (value.constant) {
      input.known = *value.constant;
      continue;
    }
    for (const int64_t dim : value.dims) input.shape.push_back(dim < 0 ? open_size : dim);
  }
  try {
    make_step(graph, node, inputs, std::vector<bool>(graph.values.size(), true), 1);
    return {};
  } catch (const std::exception& error) {
    return error.what();
  }
}

}  // namespace softneuro::ort
