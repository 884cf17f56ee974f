// torch.ops.softneuro.attention: the layer called eagerly, on the LibTorch stable ABI.
#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>
#include <torch/csrc/stable/tensor.h>

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "net/layer_call.h"
#include "runtime/region_table.h"
#include "torch_backend/native/ops/row_major.h"
#include "torch_backend/native/ops/run_net.h"

namespace {

using softneuro::Ready;
using softneuro::Shape;
using softneuro::TensorDesc;
using torch::headeronly::ScalarType;
using torch::stable::Tensor;

// With as many axes of one element in front as make it four.
Shape shape_of_four(const Tensor& tensor) {
  const auto sizes = tensor.sizes();
  STD_TORCH_CHECK(sizes.size() <= 4, "softneuro: attention takes tensors of rank 4 or less, not ", sizes.size());
  Shape shape;
  for (size_t axis = sizes.size(); axis < 4; ++axis) shape.push_back(1);
  for (size_t axis = 0; axis < sizes.size(); ++axis) shape.push_back(sizes[axis]);
  return shape;
}

softneuro::Layer attention_layer(const std::optional<Tensor>& mask, bool is_causal, std::optional<double> scale) {
  softneuro::Layer layer;
  layer.type = "attention";
  if (scale) layer.attrs.set("scale", *scale);
  if (is_causal) layer.attrs.set("after", int64_t{0});
  if (mask) layer.attrs.set("mask", std::string(mask->scalar_type() == ScalarType::Bool ? "keep" : "add"));
  return layer;
}

std::shared_ptr<const Ready> ready_for(softneuro::Layer layer, const std::vector<TensorDesc>& in,
                                       const std::string& routine) {
  const auto threads = static_cast<int>(torch::stable::get_num_threads());
  softneuro::Signature signature{threads};
  std::string key = layer.type + "{" + layer.attrs.str() + "}" + routine;
  for (const TensorDesc& desc : in) key += desc.exact();
  softneuro::append_text(signature, key);
  if (auto found = softneuro::layer_nets().find(signature, softneuro::constant_weights)) return found;
  Ready made;
  made.signature = std::move(signature);
  made.net = softneuro::prepare_layer(std::move(layer), in, routine, threads);
  auto ready = std::make_shared<const Ready>(made);
  softneuro::layer_nets().put(std::move(made));
  return ready;
}

Tensor attention(const Tensor& query, const Tensor& key, const Tensor& value, const std::optional<Tensor>& attn_mask,
                 bool is_causal, std::optional<double> scale, bool enable_gqa, const std::string& routine) {
  std::vector<Tensor> inputs;
  std::vector<TensorDesc> descs;
  for (const Tensor* tensor : {&query, &key, &value}) {
    STD_TORCH_CHECK(tensor->scalar_type() == ScalarType::Float && tensor->is_cpu(),
                    "softneuro: attention takes float32 tensors on the CPU");
    STD_TORCH_CHECK(tensor->dim() == query.dim() && tensor->dim() >= 2,
                    "softneuro: query, key and value have the same rank, 2 or more");
    inputs.push_back(softneuro::row_major(*tensor));
    descs.push_back({shape_of_four(*tensor)});
  }
  STD_TORCH_CHECK(enable_gqa || descs[0].shape[1] == descs[1].shape[1],
                  "softneuro: query and key have different numbers of heads; give enable_gqa=True");
  if (attn_mask) {
    STD_TORCH_CHECK(!is_causal, "softneuro: attention is either causal or has a mask");
    const bool keeps = attn_mask->scalar_type() == ScalarType::Bool;
    STD_TORCH_CHECK((keeps || attn_mask->scalar_type() == ScalarType::Float) && attn_mask->is_cpu(),
                    "softneuro: a mask is bool or float32, on the CPU");
    inputs.push_back(softneuro::row_major(*attn_mask));
    descs.push_back(
        softneuro::desc_of(shape_of_four(*attn_mask), keeps ? softneuro::DType::boolean : softneuro::DType::float32));
  }
  const auto ready = ready_for(attention_layer(attn_mask, is_causal, scale), descs, routine);
  const Tensor out(softneuro::empty_output(*ready, 0));
  std::vector<const void*> from;
  for (const Tensor& input : inputs) from.push_back(input.data_ptr());
  void* const to = out.data_ptr();
  softneuro::run_on_torch(*ready, from, {&to, 1});
  if (query.dim() == 4) return out;
  std::vector<int64_t> shape(query.sizes().data(), query.sizes().data() + query.dim());
  shape.back() = value.sizes()[static_cast<size_t>(value.dim()) - 1];
  return torch::stable::reshape(out, {shape.data(), shape.size()});
}

}  // namespace

STABLE_TORCH_LIBRARY_FRAGMENT(softneuro, m) {
  m.def(
      "attention(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, bool is_causal=False, "
      "float? scale=None, bool enable_gqa=False, str routine='') -> Tensor");
}

STABLE_TORCH_LIBRARY_IMPL(softneuro, CPU, m) { m.impl("attention", TORCH_BOX(&attention)); }
