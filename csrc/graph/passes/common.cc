#include "graph/passes/common.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace softneuro {
namespace {

bool listed(std::string_view type, std::initializer_list<std::string_view> types) {
  return std::find(types.begin(), types.end(), type) != types.end();
}

}  // namespace

bool accepts_activation(std::string_view type) {
  return listed(type, {"conv2d", "conv1d", "conv_transpose2d", "linear", "dynamic_linear", "dynamic_conv2d",
                       "linear_blocks", "matmul", "binary", "scale_shift"});
}

bool accepts_residual(std::string_view type) {
  return listed(type, {"conv2d", "conv1d", "conv_transpose2d", "linear", "dynamic_linear", "dynamic_conv2d",
                       "linear_blocks", "matmul", "binary"});
}

const Layer* producer_of(const Graph& graph, int blob) {
  const int producer = graph.blob(blob).producer;
  return producer < 0 ? nullptr : &graph.layers()[static_cast<size_t>(producer)];
}

int sole_reader(const Graph& graph, int blob) {
  if (graph.is_output(blob)) return -1;
  const std::vector<int> readers = graph.consumers(blob);
  if (readers.size() != 1) return -1;
  const std::vector<int>& inputs = graph.layers()[static_cast<size_t>(readers[0])].inputs;
  return std::count(inputs.begin(), inputs.end(), blob) == 1 ? readers[0] : -1;
}

const Layer* private_producer(const Graph& graph, int blob, int reader) {
  return sole_reader(graph, blob) == reader ? producer_of(graph, blob) : nullptr;
}

int index_of(const Graph& graph, const Layer* layer) { return graph.blob(layer->output()).producer; }

Constant constant_of(const Graph& graph, int blob) {
  const Layer* producer = producer_of(graph, blob);
  return producer != nullptr && producer->type == "constant" ? producer->weight("value") : nullptr;
}

bool per_channel(const Shape& other, const Shape& out, int axis) {
  if (other.rank() > out.rank()) return false;
  for (int k = 0; k < other.rank(); ++k) {
    const int at = out.rank() - other.rank() + k;
    if (other[k] != 1 && (at != axis || other[k] != out[axis])) return false;
  }
  return true;
}

bool is_along_rows(const Shape& own, const Shape& of) {
  if (own.rank() > of.rank()) return false;
  if (own.elements() == 1) return true;
  for (int axis = 0; axis < of.rank(); ++axis) {
    const int at = axis - (of.rank() - own.rank());
    if ((at < 0 ? 1 : own[at]) != (axis + 1 == of.rank() ? 1 : of[axis])) return false;
  }
  return true;
}

bool keeps_rows(const Shape& a, const Shape& b) {
  return a.rank() > 0 && b.rank() > 0 && a[a.rank() - 1] == b[b.rank() - 1];
}

int with_same_elements(Graph& graph, int blob, const Shape& shape, const std::string& name) {
  if (graph.blob(blob).desc.shape == shape) return blob;
  Layer reshape;
  reshape.name = name, reshape.type = "reshape", reshape.inputs = {blob};
  reshape.attrs.set("shape", std::vector<int64_t>(shape.begin(), shape.end()));
  return graph.insert_layer(std::move(reshape));
}

void retire(Graph& graph, int layer, int replacement) {
  Layer& husk = graph.layer(layer);
  graph.replace_uses(husk.output(), replacement);
  const bool made_here = graph.blob(replacement).producer >= 0;  // else the name is an input's
  if (made_here) graph.rename(replacement, graph.blob(husk.output()).name);
  husk.inputs.clear();
  husk.type.clear();
}

Constant with_row_factors(const Constant& weight, const ConstantData::MakeFactors& make) {
  const Quantization* own = weight->desc().quantization.get();
  if (own != nullptr && own->axis <= 0 && weight->memory() != nullptr) {
    const std::vector<double> factors = make();
    if (std::all_of(factors.begin(), factors.end(), [](double factor) { return factor == 1; })) return weight;
    auto scaled = std::make_shared<Quantization>(*own);
    scaled->scales.clear(), scaled->zero_points.clear();
    bool whole = true;
    for (size_t row = 0; row < factors.size(); ++row) {
      const size_t from = own->axis < 0 ? 0 : row;
      const auto scale = static_cast<float>(static_cast<double>(own->scales[from]) * factors[row]);
      whole = whole && scale > 0 && std::isfinite(scale);
      scaled->scales.push_back(scale);
      scaled->zero_points.push_back(own->zero_points[from]);
    }
    scaled->axis = 0;
    const TensorDesc desc{.shape = weight->shape(), .quantization = std::move(scaled)};
    if (whole) return std::make_shared<const ConstantData>(desc, weight->dtype(), weight->memory());
  }
  return std::make_shared<const ConstantData>(weight, make);
}

Constant lazy_constant(const Shape& shape, std::function<std::vector<float>()> make) {
  return std::make_shared<const ConstantData>(shape, [make = std::move(make)] {
    auto held = std::make_shared<const std::vector<float>>(make());
    return ConstantData::Values(held, held->data());
  });
}

}  // namespace softneuro
