#include "graph/forms.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "graph/bias_correction.h"
#include "layers/contract/registry.h"

namespace softneuro {
namespace {

bool is_bytes(const Schema& schema) { return dtype_kind(schema.dtype) == DTypeKind::quantized; }

// A layer's blobs, each with whether it is bytes: inputs come first, a residual last of them, then outputs.
using Bytes = std::vector<bool>;

// A routine says it before it sees a problem.
Bytes bytes_of(const RoutineInfo& info, const Layer& layer) {
  Bytes bytes;
  for (size_t i = 0; i < layer.inputs.size(); ++i) {
    const bool residual = layer.post.residual && i + 1 == layer.inputs.size();
    if (residual) {
      bytes.push_back(is_bytes(info.residual.value_or(info.out)));
    } else {
      const bool other = i > 0 && i <= info.others.size();
      bytes.push_back(is_bytes(other ? info.others[i - 1] : info.in));
    }
  }
  bytes.resize(layer.inputs.size() + layer.outputs.size(), is_bytes(info.out));
  return bytes;
}

bool is_open(const Graph& graph, int blob) { return graph.blob(blob).desc.quantization == nullptr; }

int blob_at(const Layer& layer, size_t slot) {
  return slot < layer.inputs.size() ? layer.inputs[slot] : layer.outputs[slot - layer.inputs.size()];
}

// Products of bytes have both factors so.
bool has_bytes_of_weights(Layer& layer, const Grids& grids) {
  const Constant* weight = layer.find_weight("weight");
  if (weight == nullptr || (*weight)->desc().quantization != nullptr) return true;
  Constant bytes = grids.bytes_of(*weight);
  if (bytes == nullptr) return false;
  // Roles stay in order, as keys of packings go by it.
  for (auto& [role, value] : layer.weights) {
    if (role == "weight") value = bytes;
  }
  return true;
}

// A form's bias makes up for its rounded weights where calibration has found that it errs less then.
void correct_bias(Fusion& form, const Graph& graph, const Grids& grids, int index) {
  if (!grids.corrects(index, form.kind)) return;
  const std::vector<double> shift = grids.shift_of(graph.layers()[static_cast<size_t>(index)], form.kind);
  if (!shift.empty()) take_out(form.layer, shift);
}

// The form, or one without layers if there is none: a grid is not known, or one blob's bytes would have to be
// another's.
Fusion form_of(const Graph& graph, const Grids& grids, int index, const Bytes& bytes) {
  Fusion form;
  const Layer& layer = graph.layers()[static_cast<size_t>(index)];
  for (size_t slot = 0; slot < bytes.size(); ++slot) {
    const int blob = blob_at(layer, slot);
    if (bytes[slot] && is_open(graph, blob) && grids.blob(blob) == nullptr) return form;
  }
  form.layer = layer;
  form.kind = "bytes";
  form.bytes = bytes;
  if (bytes[0] && !has_bytes_of_weights(form.layer, grids)) return form;
  if (bytes[0]) correct_bias(form, graph, grids, index);
  const auto desc_at = [&](size_t slot) {
    TensorDesc desc = graph.blob(blob_at(layer, slot)).desc;
    if (bytes[slot] && desc.quantization == nullptr) desc.quantization = grids.blob(blob_at(layer, slot));
    return desc;
  };
  for (size_t i = 0; i < layer.inputs.size(); ++i) form.in.push_back(desc_at(i));
  const std::span main(form.in.data(), static_cast<size_t>(layer.main_inputs()));
  const TensorDesc wanted = desc_at(layer.inputs.size());
  try {
    form.outs = infer_outputs(layer_def(layer.type), form.layer, main);
    if (wanted.quantization != nullptr && !same_quantization(form.outs.front(), wanted)) {
      form.layer.post.quantize = wanted.quantization;
      form.outs = infer_outputs(layer_def(layer.type), form.layer, main);
    }
  } catch (const Error&) {
    return form;  // the type takes no bytes there
  }
  if (!same_quantization(form.outs.front(), wanted)) return form;
  form.layers = {index};
  return form;
}

constexpr std::string_view product_kinds[] = {"dynamic", "blocks8", "blocks4"};

int bits_of(std::string_view kind) { return kind.back() - '0'; }

// A linear layer whose weights alone are rounded ahead; without layers if there is none.
Fusion product_form(const Graph& graph, const Grids& grids, int index, std::string_view kind) {
  Fusion form;
  const Layer& layer = graph.layers()[static_cast<size_t>(index)];
  if (layer.type != "linear" || layer.main_inputs() != 1) return form;
  const Constant& weight = layer.weight("weight");
  const Problem problem = graph.problem(index, 1);
  const auto is_quantized = [](const TensorDesc& desc) { return desc.quantization != nullptr; };
  if (is_quantized(weight->desc()) || std::any_of(problem.in.begin(), problem.in.end(), is_quantized)) return form;
  form.layer = layer;
  form.kind = kind;
  form.bytes.resize(problem.in.size() + 1, false);
  form.in = problem.in;
  form.outs = problem.outs;
  if (kind == "dynamic") {
    const Constant bytes = grids.bytes_of(weight);
    if (bytes == nullptr) return form;
    form.layer.type = "dynamic_linear";
    form.layer.set_weight("weight", bytes);
    form.layer.attrs.set("rows", int64_t{1});
  } else {
    const BlockWeights blocks = grids.blocks_of(weight, bits_of(kind));
    if (blocks.weight == nullptr) return form;
    form.layer.type = "linear_blocks";
    form.layer.set_weight("weight", blocks.weight);
    form.layer.set_weight("scales", blocks.scales);
    form.layer.attrs.set("bits", int64_t{bits_of(kind)});
    form.layer.attrs.set("block", int64_t{BlockWeights::block});
  }
  correct_bias(form, graph, grids, index);
  form.layers = {index};
  return form;
}

// Whether a choice is for weights of so many bits, as its params say.
bool has_bits(const RoutineChoice& choice, int bits) {
  return choice.descriptor().find("bits=" + std::to_string(bits)) != std::string::npos;
}

}  // namespace

std::vector<Fusion> find_forms(const Graph& graph, const Grids& grids) {
  std::vector<Fusion> forms;
  for (int l = 0; l < static_cast<int>(graph.layers().size()); ++l) {
    const Layer& layer = graph.layers()[static_cast<size_t>(l)];
    if (layer.inputs.empty() || layer.outputs.size() != 1 || layer.host != nullptr) continue;
    const auto add = [&](Fusion form) {
      if (!form.layers.empty()) forms.push_back(std::move(form));
    };
    for (const std::string_view kind : product_kinds) add(product_form(graph, grids, l, kind));
    std::set<Bytes> seen;
    for (const auto& routine : routines(layer.type)) {
      const Bytes bytes = bytes_of(routine->info(), layer);
      if (!wants_form(graph, grids, l, *routine) || !isa_available(routine->info().isa)) continue;
      if (!seen.insert(bytes).second) continue;
      add(form_of(graph, grids, l, bytes));
    }
  }
  return forms;
}

Fusion find_form(const Graph& graph, const Grids& grids, int index, const RoutineChoice& choice) {
  const Layer& layer = graph.layers()[static_cast<size_t>(index)];
  if (choice.routine->info().layer_type == layer.type) {
    return form_of(graph, grids, index, bytes_of(choice.routine->info(), layer));
  }
  for (const std::string_view kind : product_kinds) {
    const bool dynamic = choice.routine->info().layer_type == "dynamic_linear";
    if (dynamic != (kind == "dynamic") || (!dynamic && !has_bits(choice, bits_of(kind)))) continue;
    Fusion form = product_form(graph, grids, index, kind);
    if (!form.layers.empty() && form.layer.type == choice.routine->info().layer_type) return form;
  }
  return {};
}

bool computes_form(const RoutineChoice& choice, const Fusion& form) {
  if (form.layer.type == "linear_blocks") {
    return has_bits(choice, static_cast<int>(form.layer.attrs.integer("bits")));
  }
  return bytes_of(choice.routine->info(), form.layer) == form.bytes;
}

bool wants_form(const Graph& graph, const Grids& grids, int index, const Routine& routine) {
  const Layer& layer = graph.layers()[static_cast<size_t>(index)];
  if (routine.info().layer_type != layer.type) return false;
  const Bytes bytes = bytes_of(routine.info(), layer);
  for (size_t slot = 0; slot < bytes.size(); ++slot) {
    const int blob = blob_at(layer, slot);
    if (bytes[slot] && is_open(graph, blob) && grids.blob(blob) != nullptr) return true;
  }
  return false;
}

}  // namespace softneuro
