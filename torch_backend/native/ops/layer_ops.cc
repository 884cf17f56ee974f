// torch.ops.softneuro: layers called eagerly, on the LibTorch stable ABI. A net is kept by everything but the weights'
// content, which is compared whole at each call.
#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>
#include <torch/csrc/stable/tensor.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/memory_snapshot.h"
#include "net/layer_call.h"
#include "runtime/region_table.h"
#include "torch_backend/native/ops/row_major.h"
#include "torch_backend/native/ops/run_net.h"

namespace {

using softneuro::Quantization;
using softneuro::Ready;
using softneuro::TensorDesc;
using torch::headeronly::ScalarType;
using torch::stable::Tensor;

void check_tensor(const Tensor& tensor, const char* name, ScalarType type, const char* type_name) {
  STD_TORCH_CHECK(tensor.scalar_type() == type, "softneuro: ", name, " must be ", type_name);
  STD_TORCH_CHECK(tensor.is_cpu(), "softneuro: ", name, " must be on the CPU");
}

void check_float(const Tensor& tensor, const char* name) { check_tensor(tensor, name, ScalarType::Float, "float32"); }

softneuro::Shape shape_of(const Tensor& tensor) {
  const auto sizes = tensor.sizes();
  return softneuro::Shape(std::span<const int64_t>(sizes.data(), sizes.size()));
}

// What a net is made of: all of it is compared.
class Content {
 public:
  explicit Content(const std::vector<Tensor>& weights) {
    for (const Tensor& weight : weights) {
      data_.push_back(weight.data_ptr());
      content_.add(static_cast<const std::byte*>(weight.data_ptr()),
                   static_cast<size_t>(weight.numel() * weight.element_size()));
    }
  }
  bool is_of(const std::vector<Tensor>& weights) const {
    const auto same = [](const Tensor& weight, const void* data) { return weight.data_ptr() == data; };
    return std::equal(weights.begin(), weights.end(), data_.begin(), data_.end(), same) && content_.unchanged();
  }

 private:
  std::vector<const void*> data_;
  softneuro::MemorySnapshot content_;
};

// A layer's call: what it is given beside its attributes.
class LayerCall {
 public:
  LayerCall(softneuro::Layer layer, const Tensor& x, TensorDesc desc)
      : layer_(std::move(layer)), x_(softneuro::row_major(x)), desc_(std::move(desc)) {}

  // Memory that the net is made of. It lives in the net as the layer's weight of this name, if it has one.
  void add(const char* role, const Tensor& tensor, softneuro::DType dtype, const TensorDesc& desc) {
    const Tensor& kept = weights_.emplace_back(softneuro::row_major(tensor));
    if (role == nullptr) return;
    auto memory = std::shared_ptr<const void>(kept.data_ptr(), [kept](const void*) {});
    layer_.set_weight(role, std::make_shared<const softneuro::ConstantData>(desc, dtype, std::move(memory)));
  }
  void add_floats(const char* role, const std::optional<Tensor>& tensor) {
    if (tensor) add(role, *tensor, softneuro::DType::float32, {shape_of(*tensor)});
  }

  // `sparse`: by a routine that makes use of zeros in weights.
  Tensor run(const std::string& routine, bool sparse = false) {
    const auto threads = static_cast<int>(torch::stable::get_num_threads());
    softneuro::Signature signature{threads};
    std::string key = layer_.type + "{" + layer_.attrs.str() + "}" + layer_.post.str() + routine + desc_.exact() +
                      (sparse ? " sparse" : "");
    if (layer_.post.quantize != nullptr) {
      TensorDesc out;
      out.quantization = layer_.post.quantize;
      key += out.exact();
    }
    for (const auto& [role, constant] : layer_.weights) key += role + constant->desc().str();
    softneuro::append_text(signature, key);
    auto ready = softneuro::layer_nets().find(signature, softneuro::constant_weights);
    if (!ready || !static_cast<const Content*>(ready->door.get())->is_of(weights_)) {
      Ready made;
      made.signature = std::move(signature);
      made.door = std::make_shared<const Content>(weights_);
      made.net = softneuro::prepare_layer(std::move(layer_), {desc_}, routine, threads, sparse);
      ready = std::make_shared<const Ready>(made);
      softneuro::layer_nets().put(std::move(made));
    }
    const Tensor out(softneuro::empty_output(*ready, 0));
    const void* const from = x_.data_ptr();
    void* const to = out.data_ptr();
    softneuro::run_on_torch(*ready, {&from, 1}, {&to, 1});
    return out;
  }

 private:
  softneuro::Layer layer_;
  Tensor x_;
  TensorDesc desc_;
  std::vector<Tensor> weights_;
};

Tensor run_floats(softneuro::Layer layer, const Tensor& x, const Tensor& weight, const std::optional<Tensor>& bias,
                  const std::string& routine, bool sparse = false) {
  check_float(x, "the input");
  check_float(weight, "the weight");
  if (bias) check_float(*bias, "the bias");
  LayerCall call(std::move(layer), x, {shape_of(x)});
  call.add_floats("weight", weight);
  call.add_floats("bias", bias);
  return call.run(routine, sparse);
}

// One scale for all of a tensor, of unsigned bytes.
std::shared_ptr<const Quantization> byte_quantization(double scale, int64_t zero_point, const char* name) {
  STD_TORCH_CHECK(std::isfinite(scale) && static_cast<float>(scale) > 0, "softneuro: the scale of ", name, " is ",
                  scale, "; scales are positive and finite");
  STD_TORCH_CHECK(zero_point >= 0 && zero_point <= 255, "softneuro: the zero point of ", name, " is ", zero_point,
                  "; it has to be within 0..255");
  return std::make_shared<const Quantization>(Quantization{
      .scales = {static_cast<float>(scale)},
      .zero_points = {static_cast<int32_t>(zero_point)},
      .rounding = Quantization::Rounding::reciprocal,
  });
}

struct QuantizedOperands {
  const Tensor& x;
  double x_scale;
  int64_t x_zero_point;
  const Tensor& weight;
  const Tensor& weight_scale;
  const std::optional<Tensor>& bias;
  std::optional<double> out_scale;
  int64_t out_zero_point;
};

Tensor run_bytes(softneuro::Layer layer, const QuantizedOperands& o, const std::string& routine) {
  check_tensor(o.x, "the input", ScalarType::Byte, "uint8");
  check_tensor(o.weight, "the weight", ScalarType::Char, "int8");
  check_float(o.weight_scale, "the weight's scale");
  if (o.bias) check_float(*o.bias, "the bias");
  STD_TORCH_CHECK(o.x.numel() > 0 && o.weight.numel() > 0, "softneuro: an operand is empty");
  const int64_t rows = o.weight.sizes()[0], count = o.weight_scale.numel();
  STD_TORCH_CHECK(o.weight_scale.dim() <= 1 && (count == 1 || count == rows), "softneuro: the weight has ", rows,
                  " rows and ", count, " scales; give one for each or one for all");
  if (o.out_scale) layer.post.quantize = byte_quantization(*o.out_scale, o.out_zero_point, "the output");
  const Tensor scales = softneuro::row_major(o.weight_scale);
  const auto* const first = static_cast<const float*>(scales.data_ptr());
  const Quantization of_weight{.scales = {first, first + count},
                               .zero_points = std::vector<int32_t>(static_cast<size_t>(count)),
                               .axis = count == rows ? 0 : -1,
                               .least = -128,
                               .most = 127};
  check_quantization(of_weight, shape_of(o.weight));
  const TensorDesc desc{.shape = shape_of(o.x), .quantization = byte_quantization(o.x_scale, o.x_zero_point, "x")};
  LayerCall call(std::move(layer), o.x, desc);
  const TensorDesc weight{.shape = shape_of(o.weight), .quantization = std::make_shared<const Quantization>(of_weight)};
  call.add("weight", o.weight, softneuro::DType::qint8, weight);
  call.add(nullptr, scales, softneuro::DType::float32, {});
  call.add_floats("bias", o.bias);
  return call.run(routine);
}

softneuro::PostOps post_ops(const std::string& activation) {
  softneuro::PostOps post;
  post.activation.kind = softneuro::parse_activation(activation);
  using softneuro::ActivationKind;
  for (const ActivationKind kind : {ActivationKind::clamp, ActivationKind::leaky_relu, ActivationKind::elu}) {
    STD_TORCH_CHECK(post.activation.kind != kind, "softneuro: activation '", activation, "' needs parameters");
  }
  return post;
}

softneuro::Layer conv2d_layer(const std::vector<int64_t>& stride, const std::vector<int64_t>& padding,
                              const std::vector<int64_t>& dilation, int64_t groups, const std::string& activation) {
  STD_TORCH_CHECK(stride.size() == 2 && padding.size() == 2 && dilation.size() == 2,
                  "softneuro: stride, padding and dilation of conv2d have two values each");
  softneuro::Layer layer;
  layer.type = "conv2d";
  layer.attrs.set("stride", stride);
  layer.attrs.set("padding", std::vector<int64_t>{padding[0], padding[1], padding[0], padding[1]});
  layer.attrs.set("dilation", dilation);
  layer.attrs.set("groups", groups);
  layer.post = post_ops(activation);
  return layer;
}

softneuro::Layer linear_layer(const std::string& activation) {
  softneuro::Layer layer;
  layer.type = "linear";
  layer.post = post_ops(activation);
  return layer;
}

Tensor conv2d(const Tensor& x, const Tensor& weight, const std::optional<Tensor>& bias,
              const std::vector<int64_t>& stride, const std::vector<int64_t>& padding,
              const std::vector<int64_t>& dilation, int64_t groups, const std::string& activation,
              const std::string& routine) {
  return run_floats(conv2d_layer(stride, padding, dilation, groups, activation), x, weight, bias, routine);
}

Tensor sparse_conv2d(const Tensor& x, const Tensor& weight, const std::optional<Tensor>& bias,
                     const std::vector<int64_t>& stride, const std::vector<int64_t>& padding,
                     const std::vector<int64_t>& dilation, int64_t groups, const std::string& activation,
                     const std::string& routine) {
  return run_floats(conv2d_layer(stride, padding, dilation, groups, activation), x, weight, bias, routine, true);
}

// As two convolutions, one of what the other leaves.
Tensor fused_sparse_conv2d(const Tensor& x, const Tensor& first_weight, const std::optional<Tensor>& first_bias,
                           const Tensor& second_weight, const std::optional<Tensor>& second_bias,
                           const std::vector<int64_t>& first_stride, const std::vector<int64_t>& first_padding,
                           const std::vector<int64_t>& first_dilation, int64_t first_groups,
                           const std::string& first_activation, const std::vector<int64_t>& second_stride,
                           const std::vector<int64_t>& second_padding, const std::vector<int64_t>& second_dilation,
                           int64_t second_groups, const std::string& second_activation, const std::string& routine) {
  softneuro::Layer first = conv2d_layer(first_stride, first_padding, first_dilation, first_groups, first_activation);
  softneuro::Layer second =
      conv2d_layer(second_stride, second_padding, second_dilation, second_groups, second_activation);
  check_float(x, "the input");
  for (const Tensor* weight : {&first_weight, &second_weight}) check_float(*weight, "a weight");
  for (const auto* bias : {&first_bias, &second_bias}) {
    if (*bias) check_float(**bias, "a bias");
  }
  LayerCall call(softneuro::conv2d_pair_of(first, second), x, {shape_of(x)});
  call.add_floats("first_weight", first_weight);
  call.add_floats("first_bias", first_bias);
  call.add_floats("second_weight", second_weight);
  call.add_floats("second_bias", second_bias);
  return call.run(routine, true);
}

Tensor linear(const Tensor& x, const Tensor& weight, const std::optional<Tensor>& bias, const std::string& activation,
              const std::string& routine) {
  return run_floats(linear_layer(activation), x, weight, bias, routine);
}

Tensor qconv2d(const Tensor& x, double x_scale, int64_t x_zero_point, const Tensor& weight, const Tensor& weight_scale,
               const std::optional<Tensor>& bias, const std::vector<int64_t>& stride,
               const std::vector<int64_t>& padding, const std::vector<int64_t>& dilation, int64_t groups,
               std::optional<double> out_scale, int64_t out_zero_point, const std::string& activation,
               const std::string& routine) {
  return run_bytes(conv2d_layer(stride, padding, dilation, groups, activation),
                   {x, x_scale, x_zero_point, weight, weight_scale, bias, out_scale, out_zero_point}, routine);
}

Tensor qlinear(const Tensor& x, double x_scale, int64_t x_zero_point, const Tensor& weight, const Tensor& weight_scale,
               const std::optional<Tensor>& bias, std::optional<double> out_scale, int64_t out_zero_point,
               const std::string& activation, const std::string& routine) {
  return run_bytes(linear_layer(activation),
                   {x, x_scale, x_zero_point, weight, weight_scale, bias, out_scale, out_zero_point}, routine);
}

}  // namespace

STABLE_TORCH_LIBRARY_FRAGMENT(softneuro, m) {
  for (const char* name : {"conv2d", "sparse_conv2d"}) {
    m.def(
        (name + std::string("(Tensor x, Tensor weight, Tensor? bias=None, SymInt[2] stride=1, SymInt[2] padding=0, "
                            "SymInt[2] dilation=1, SymInt groups=1, str activation='none', str routine='') -> Tensor"))
            .c_str());
  }
  m.def(
      "fused_sparse_conv2d(Tensor x, Tensor first_weight, Tensor? first_bias, Tensor second_weight, "
      "Tensor? second_bias=None, SymInt[2] first_stride=1, SymInt[2] first_padding=0, SymInt[2] first_dilation=1, "
      "SymInt first_groups=1, str first_activation='none', SymInt[2] second_stride=1, SymInt[2] second_padding=0, "
      "SymInt[2] second_dilation=1, SymInt second_groups=1, str second_activation='none', str routine='') -> Tensor");
  m.def("linear(Tensor x, Tensor weight, Tensor? bias=None, str activation='none', str routine='') -> Tensor");
  m.def(
      "qconv2d(Tensor x, float x_scale, int x_zero_point, Tensor weight, Tensor weight_scale, Tensor? bias=None, "
      "SymInt[2] stride=1, SymInt[2] padding=0, SymInt[2] dilation=1, SymInt groups=1, float? out_scale=None, "
      "int out_zero_point=0, str activation='none', str routine='') -> Tensor");
  m.def(
      "qlinear(Tensor x, float x_scale, int x_zero_point, Tensor weight, Tensor weight_scale, Tensor? bias=None, "
      "float? out_scale=None, int out_zero_point=0, str activation='none', str routine='') -> Tensor");
}

STABLE_TORCH_LIBRARY_IMPL(softneuro, CPU, m) {
  m.impl("conv2d", TORCH_BOX(&conv2d));
  m.impl("sparse_conv2d", TORCH_BOX(&sparse_conv2d));
  m.impl("fused_sparse_conv2d", TORCH_BOX(&fused_sparse_conv2d));
  m.impl("linear", TORCH_BOX(&linear));
  m.impl("qconv2d", TORCH_BOX(&qconv2d));
  m.impl("qlinear", TORCH_BOX(&qlinear));
}
