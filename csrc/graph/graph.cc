#include "graph/graph.h"

#include <algorithm>
#include <sstream>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "layers/contract/registry.h"

namespace softneuro {
namespace {

std::string where_of(const Layer& layer) {
  return layer.name.empty() ? "layer of type '" + layer.type + "'" : "layer '" + layer.name + "' (" + layer.type + ")";
}

void check_boundary(const TensorDesc& desc, const Schema& schema, const std::string& where) {
  if (const Refusal refusal = fits(desc, schema); !refusal.accepted()) throw Error(refusal.reason(), where);
  if (schema.layout.strided) {
    throw Error("a strided layout cannot be at the border", where, "hand over nchw or nhwc");
  }
}

}  // namespace

int Graph::check_blob(int blob, std::string_view where) const {
  if (blob >= 0 && blob < static_cast<int>(blobs_.size())) return blob;
  throw Error("there is no blob " + std::to_string(blob), std::string(where), "use the id that an add returned");
}

int Graph::add_input(std::string name, const TensorDesc& desc) {
  return add_input(std::move(name), desc, natural_schema(desc));
}

int Graph::add_input(std::string name, const TensorDesc& desc, const Schema& schema) {
  const std::string where = "input '" + name + "'";
  for (int64_t dim : desc.shape) {
    if (dim < 0) throw Error("shape " + desc.shape.str() + " has a negative dimension", where);
  }
  if (desc.quantization != nullptr) check_quantization(*desc.quantization, desc.shape);
  check_boundary(desc, schema, where);
  blobs_.push_back({std::move(name), desc, -1});
  inputs_.push_back(static_cast<int>(blobs_.size()) - 1);
  input_schemas_.push_back(schema);
  return inputs_.back();
}

int Graph::add_layer(Layer layer) {
  const std::string where = where_of(layer);
  std::vector<TensorDesc> in;
  for (int input : layer.inputs) in.push_back(blob(check_blob(input, where)).desc);
  OutputDescs outs;
  try {
    const std::span<const TensorDesc> main(in.data(), static_cast<size_t>(layer.main_inputs()));
    outs = infer_outputs(layer_def(layer.type), layer, main);
  } catch (const Error& error) {
    throw Error(error.what(), where);
  }
  if (layer.post.residual && in.back().shape != outs.front().shape) {
    throw Error(
        "residual of shape " + in.back().shape.str() + " does not match the output's " + outs.front().shape.str(),
        where);
  }
  layer.outputs.clear();
  for (size_t k = 0; k < outs.size(); ++k) {
    layer.outputs.push_back(static_cast<int>(blobs_.size()));
    const std::string name = k == 0 ? layer.name : layer.name + "." + std::to_string(k);
    blobs_.push_back({name, std::move(outs[k]), static_cast<int>(layers_.size())});
  }
  layers_.push_back(std::move(layer));
  return layers_.back().output();
}

void Graph::add_output(int blob) {
  add_output(blob, natural_schema(this->blob(check_blob(blob, "graph output")).desc));
}

void Graph::add_output(int blob, const Schema& schema) {
  const std::string where = "output " + std::to_string(outputs_.size());
  check_boundary(this->blob(check_blob(blob, where)).desc, schema, where);
  outputs_.push_back(blob);
  output_schemas_.push_back(schema);
}

void Graph::set_output_schema(int output, const Schema& schema) {
  check_boundary(blob(outputs_.at(static_cast<size_t>(output))).desc, schema, "output " + std::to_string(output));
  output_schemas_[static_cast<size_t>(output)] = schema;
}

Problem Graph::problem(int index, int threads) const {
  const Layer& layer = layers_[static_cast<size_t>(index)];
  Problem problem{&layer, {}, {}, threads};
  for (int input : layer.inputs) problem.in.push_back(blob(input).desc);
  for (int output : layer.outputs) problem.outs.push_back(blob(output).desc);
  return problem;
}

std::vector<int> Graph::consumers(int blob) const {
  std::vector<int> readers;
  for (size_t i = 0; i < layers_.size(); ++i) {
    const auto& inputs = layers_[i].inputs;
    if (std::find(inputs.begin(), inputs.end(), blob) != inputs.end()) readers.push_back(static_cast<int>(i));
  }
  return readers;
}

bool Graph::is_output(int blob) const { return std::find(outputs_.begin(), outputs_.end(), blob) != outputs_.end(); }

void Graph::replace_uses(int from, int to) {
  // The same values do, though they be known to lie on a grid.
  TensorDesc wanted = blob(from).desc;
  if (wanted.quantization == nullptr) wanted.quantization = blob(to).desc.quantization;
  if (wanted != blob(to).desc) {
    throw Error("blob of shape " + blob(from).desc.shape.str() + " cannot stand in for " + blob(to).desc.shape.str());
  }
  for (Layer& layer : layers_) std::replace(layer.inputs.begin(), layer.inputs.end(), from, to);
  std::replace(outputs_.begin(), outputs_.end(), from, to);
}

void Graph::compact() {
  // Depth-first from the outputs, inputs first to last: an order that follows from the topology alone, so that doors
  // which meet the layers in different orders get the same graph.
  std::vector<char> placed(layers_.size(), 0);
  std::vector<int> order, stack;
  for (int output : outputs_) {
    stack.push_back(blob(output).producer);
    while (!stack.empty()) {
      const int index = stack.back();
      if (index < 0 || placed[static_cast<size_t>(index)]) {
        stack.pop_back();
        continue;
      }
      const size_t waiting = stack.size();
      const auto& inputs = layers_[static_cast<size_t>(index)].inputs;
      for (auto input = inputs.rbegin(); input != inputs.rend(); ++input) {
        const int producer = blob(*input).producer;
        if (producer >= 0 && !placed[static_cast<size_t>(producer)]) stack.push_back(producer);
      }
      if (stack.size() > waiting) continue;
      placed[static_cast<size_t>(index)] = 1;
      order.push_back(index);
      stack.pop_back();
    }
  }
  std::vector<int> new_blob(blobs_.size(), -1);
  std::vector<Blob> blobs;
  std::vector<Layer> layers;
  for (int& input : inputs_) {
    blobs.push_back(blob(input));
    new_blob[static_cast<size_t>(input)] = static_cast<int>(blobs.size()) - 1;
    input = static_cast<int>(blobs.size()) - 1;
  }
  for (int index : order) {
    Layer layer = std::move(layers_[static_cast<size_t>(index)]);
    for (int& input : layer.inputs) input = new_blob[static_cast<size_t>(input)];
    for (int& output : layer.outputs) {
      blobs.push_back(blob(output));
      blobs.back().producer = static_cast<int>(layers.size());
      new_blob[static_cast<size_t>(output)] = static_cast<int>(blobs.size()) - 1;
      output = static_cast<int>(blobs.size()) - 1;
    }
    layers.push_back(std::move(layer));
  }
  for (int& output : outputs_) output = new_blob[static_cast<size_t>(output)];
  blobs_ = std::move(blobs);
  layers_ = std::move(layers);
}

std::string Graph::canonical() const {
  std::ostringstream text;
  for (size_t k = 0; k < inputs_.size(); ++k) {
    text << "input " << inputs_[k] << ' ' << blob(inputs_[k]).desc.exact() << ' ' << input_schemas_[k].str() << '\n';
  }
  for (size_t i = 0; i < layers_.size(); ++i) {
    for (int output : layers_[i].outputs) text << output << ' ';
    text << "= " << problem(static_cast<int>(i), 1).exact_signature() << " (";
    for (int input : layers_[i].inputs) text << ' ' << input;
    text << " )\n";
  }
  for (size_t k = 0; k < outputs_.size(); ++k) {
    text << "output " << outputs_[k] << ' ' << output_schemas_[k].str() << '\n';
  }
  return text.str();
}

std::string Graph::structural_hash() const { return content_hash(canonical()); }

std::string Graph::weights_identity() const {
  std::string text;
  for (const Layer& layer : layers_) {
    for (const auto& [role, value] : layer.weights) text += role + " " + value->identity() + "\n";
    text += "\n";
  }
  return content_hash(text);
}

}  // namespace softneuro
