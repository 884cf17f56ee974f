#include "layers/quantized/int8.h"

#include <algorithm>
#include <numeric>

#include "kernels/dynamic_rows/dynamic_rows.h"
#include "layers/shared/moving.h"

namespace softneuro {
namespace {

// Steps in one real; 1 for what is not quantized.
double steps_in_one(const Quantization* q) {
  if (q == nullptr) return 1;
  if (q->rounding == Quantization::Rounding::reciprocal) return static_cast<double>(1 / q->scales[0]);
  return 1 / static_cast<double>(q->scales[0]);
}

// Clamps are done in the output's steps, so that a sum is scaled once.
bool in_steps(const Problem& problem) { return is_clamp(problem.layer->post.activation.kind); }

double weight_scale(const Quantization& q, int64_t output) {
  // Transposed convolutions have scales by output of a group.
  return static_cast<double>(q.scales[q.axis < 0 ? 0 : static_cast<size_t>(output) % q.scales.size()]);
}

// The zero point as signed bytes have it, for weights with one.
int32_t signed_zero_point(const Quantization& q) { return q.zero_points[0] - (q.is_signed() ? 0 : 128); }

}  // namespace

double int8_unit(const Problem& problem) {
  return in_steps(problem) ? steps_in_one(problem.out().quantization.get()) : 1;
}

double int8_sum_unit(const Problem& problem) {
  const Quantization* first = problem.layer->post.quantize_first.get();
  return first != nullptr ? steps_in_one(first) : int8_unit(problem);
}

std::vector<Isa> int8_isas() {
  std::vector<Isa> isas{Isa::amx, Isa::avx512vnni, Isa::avx512, Isa::avxvnni, Isa::avx2, Isa::neon, Isa::scalar};
  std::erase_if(isas, [](Isa isa) { return !architecture_has(isa); });
  return isas;
}

RoutineInfo int8_info(const char* layer_type, Isa isa, const Layout& layout, DType out, bool sparse) {
  RoutineInfo info;
  info.layer_type = layer_type;
  info.algorithm = sparse ? "sparse_int8" : "int8";
  info.exploits_sparsity = sparse;
  info.isa = isa;
  info.in = f32_nchw.with(layout).with(DType::qint8);
  info.out = f32_nchw.with(layout).with(out);
  return info;
}

Refusal check_int8_blobs(const Problem& problem) {
  const PostOps& post = problem.layer->post;
  // One of bytes, which fits the output's schema only if it is quantized.
  const bool bytes = post.residual && problem.in.back().quantization != nullptr;
  const size_t inputs = problem.in.size() - (post.residual && !bytes ? 1 : 0);
  for (size_t i = 0; i < inputs; ++i) {
    if (const Refusal refusal = check_unsigned(problem.in[i]); !refusal.accepted()) return refusal;
  }
  return problem.out().quantization != nullptr ? check_unsigned(problem.out()) : Refusal();
}

Refusal check_int8_post(const Problem& problem) {
  if (problem.layer->post.quantize_first == nullptr) return {};
  const bool bytes = in_steps(problem) && problem.in.back().quantization != nullptr;
  return bytes ? Refusal() : Refusal("adds floats to what was quantized, or needs them then");
}

Refusal check_int8(const Problem& problem, const Int8Shape& shape, int axis, bool zero_point) {
  if (const Refusal refusal = check_int8_blobs(problem); !refusal.accepted()) return refusal;
  const ConstantData& weight = *problem.layer->weight("weight");
  const Refusal weights = zero_point ? check_weight(weight, axis) : check_signed_weight(weight, axis);
  if (!weights.accepted()) return weights;
  if (const Refusal refusal = check_int8_post(problem); !refusal.accepted()) return refusal;
  // Products of a zero point take as much room again.
  const int64_t most_k = zero_point ? GemmInt8::most_k / 2 : GemmInt8::most_k;
  return shape.k <= most_k ? Refusal() : "sums of " + std::to_string(shape.k) + " products may overflow";
}

Packing int8_packing(const Int8Shape& shape, int64_t bytes, int64_t columns, int64_t starts) {
  Packing packing;
  packing.add("weights", bytes, DType::int8, shape.outputs() * shape.k);
  packing.add("start", starts * columns, DType::int32, shape.outputs());
  packing.add("scale", columns, DType::float32, shape.outputs());
  packing.add("bias", columns, DType::float32, shape.outputs());
  packing.add("narrow", 1, DType::int32);
  return packing;
}

Packing int8_packing(const Int8Shape& shape) {
  const size_t bytes = gemm_int8_packed_bytes(static_cast<int>(shape.n), static_cast<int>(shape.k));
  return int8_packing(shape, shape.groups * static_cast<int64_t>(bytes), shape.groups * shape.padded());
}

std::string int8_pack_key(const Problem& problem) {
  std::string key;
  if (const auto& first = problem.layer->post.quantize_first) {
    key += "first " + TensorDesc{.shape = {}, .quantization = first}.exact() + ";";
  }
  for (const auto* list : {static_cast<const std::vector<TensorDesc>*>(&problem.outs), &problem.in}) {
    for (const TensorDesc& desc : *list)
      key += TensorDesc{.shape = {}, .quantization = desc.quantization}.exact() + ";";
  }
  return key;
}

std::shared_ptr<const int8_t> int8_weights(const Problem& problem) {
  const ConstantData& weight = *problem.layer->weight("weight");
  if (weight.desc().quantization->is_signed()) return std::static_pointer_cast<const int8_t>(weight.memory());
  const auto count = static_cast<size_t>(weight.elements());
  const auto* from = static_cast<const uint8_t*>(weight.memory().get());
  const std::shared_ptr<int8_t[]> moved(new int8_t[count]);
  std::transform(from, from + count, moved.get(), [](uint8_t byte) { return static_cast<int8_t>(byte ^ 0x80); });
  return {moved, moved.get()};
}

Int8RowStarts::Int8RowStarts(const Problem& problem, const Int8Shape& shape)
    : zero_(signed_zero_point(*problem.layer->weight("weight")->desc().quantization)),
      k_(shape.k),
      sum_(dynamic_rows_kernels(available_isas().front())->sum) {}

void Int8RowStarts::set(GemmInt8& call, std::byte* scratch) const {
  if (zero_ == 0) return;
  auto* starts = reinterpret_cast<int32_t*>(scratch);
  for (int row = 0; row < call.m; ++row) starts[row] = -zero_ * sum_(call.a + row * call.a_stride, k_);
  call.row_start = starts;
}

Int8Scales int8_scales(const Problem& problem, const Int8Shape& shape, const int8_t* rows) {
  const Quantization &x = *problem.in[0].quantization, &w = *problem.layer->weight("weight")->desc().quantization;
  const Constant* bias = problem.layer->find_weight("bias");
  const std::vector<double> offsets = bias != nullptr ? (*bias)->doubles() : std::vector<double>();
  const double steps = int8_sum_unit(problem);
  const int32_t zero = signed_zero_point(w);
  Int8Scales scales;
  for (int64_t output = 0; output < shape.outputs(); ++output) {
    const int32_t sum = std::accumulate(rows + output * shape.k, rows + (output + 1) * shape.k, int32_t{0});
    scales.start.push_back(-x.zero_points[0] * (sum - static_cast<int32_t>(shape.k) * zero));
    scales.scale.push_back(static_cast<float>(static_cast<double>(x.scales[0]) * weight_scale(w, output) * steps));
    scales.bias.push_back(bias != nullptr ? static_cast<float>(offsets[static_cast<size_t>(output)] * steps) : 0);
  }
  return scales;
}

namespace {

void pack_scaled(const Int8Shape& shape, const int8_t* rows, const Int8Scales& scales, const Int8Part& part,
                 Packed& to) {
  const int n = static_cast<int>(shape.n), k = static_cast<int>(shape.k);
  const size_t bytes = gemm_int8_packed_bytes(n, k);
  for (int64_t group = 0; group < shape.groups; ++group) {
    gemm_int8_pack(n, k, rows + group * n * k, k, part.weights + static_cast<size_t>(group) * bytes);
    for (int column = 0; column < shape.padded(); ++column) {
      const int64_t at = group * shape.padded() + column;
      const auto output = static_cast<size_t>(group * n + column);
      to.at<int32_t>("start")[part.start + at] = column < n ? scales.start[output] : 0;
      to.at<float>("scale")[at] = column < n ? scales.scale[output] : 0;
      to.at<float>("bias")[at] = column < n ? scales.bias[output] : 0;
    }
  }
}

void pack_whole(const Int8Shape& shape, const int8_t* rows, const Int8Scales& scales, Packed& to) {
  auto* weights = to.at<int8_t>("weights");
  pack_scaled(shape, rows, scales, {weights, 0}, to);
  const size_t bytes = gemm_int8_packed_bytes(static_cast<int>(shape.n), static_cast<int>(shape.k));
  *to.at<int32_t>("narrow") = gemm_int8_is_narrow(weights, static_cast<size_t>(shape.groups) * bytes) ? 1 : 0;
}

}  // namespace

void pack_int8_part(const Problem& problem, const Int8Shape& shape, const int8_t* rows, const Int8Part& part,
                    Packed& to) {
  pack_scaled(shape, rows, int8_scales(problem, shape, rows), part, to);
}

void pack_int8(const Problem& problem, const Int8Shape& shape, const int8_t* rows, Packed& to) {
  pack_whole(shape, rows, int8_scales(problem, shape, rows), to);
}

Packing dynamic_int8_packing(const Int8Shape& shape) {
  return int8_packing(shape).add("columns", shape.groups * shape.padded(), DType::int32, shape.outputs());
}

void pack_dynamic_int8(const Problem& problem, const Int8Shape& shape, const int8_t* rows, int32_t moved_by,
                       Packed& to) {
  const Quantization& w = *problem.layer->weight("weight")->desc().quantization;
  const Constant* bias = problem.layer->find_weight("bias");
  const std::vector<double> offsets = bias != nullptr ? (*bias)->doubles() : std::vector<double>();
  auto* const columns = to.at<int32_t>("columns");
  std::fill_n(columns, shape.groups * shape.padded(), 0);
  Int8Scales scales;
  for (int64_t output = 0; output < shape.outputs(); ++output) {
    const int32_t sum = std::accumulate(rows + output * shape.k, rows + (output + 1) * shape.k, int32_t{0});
    columns[output / shape.n * shape.padded() + output % shape.n] = sum;
    scales.start.push_back(-moved_by * sum);
    scales.scale.push_back(static_cast<float>(weight_scale(w, output)));
    scales.bias.push_back(bias != nullptr ? static_cast<float>(offsets[static_cast<size_t>(output)]) : 0);
  }
  pack_whole(shape, rows, scales, to);
}

Int8Lists::Int8Lists(const Int8Shape& shape, const int8_t* rows) {
  constexpr int64_t group = GemmInt8::group;
  for (int64_t g = 0; g < shape.groups; ++g) {
    for (int64_t first = 0; first < shape.n; first += GemmInt8::block) {
      starts.push_back(static_cast<int32_t>(groups.size()));
      const int64_t begin = g * shape.n + first,
                    end = g * shape.n + std::min<int64_t>(first + GemmInt8::block, shape.n);
      for (int64_t l = 0; l < shape.k; l += group) {
        const int64_t count = std::min(group, shape.k - l);
        bool some = false;
        for (int64_t row = begin; row < end && !some; ++row) {
          const int8_t* const at = rows + row * shape.k + l;
          some = std::any_of(at, at + count, [](int8_t weight) { return weight != 0; });
        }
        if (some) groups.push_back(static_cast<int32_t>(l / group));
      }
    }
  }
  starts.push_back(static_cast<int32_t>(groups.size()));
}

void Int8Lists::add(Packing& packing) const {
  packing.add("groups", static_cast<int64_t>(groups.size()), DType::int32);
  packing.add("group_starts", static_cast<int64_t>(starts.size()), DType::int32);
}

void Int8Lists::pack(Packed& to) const {
  std::copy(groups.begin(), groups.end(), to.at<int32_t>("groups"));
  std::copy(starts.begin(), starts.end(), to.at<int32_t>("group_starts"));
}

GemmInt8 int8_gemm(const Problem& problem, const Int8Shape& shape, const Packed& packed, DType residual) {
  GemmInt8 gemm;
  gemm.n = static_cast<int>(shape.n);
  gemm.k = static_cast<int>((shape.k + GemmInt8::group - 1) / GemmInt8::group * GemmInt8::group);
  gemm.b = packed.at<int8_t>("weights");
  gemm.narrow = *packed.at<int32_t>("narrow") != 0;
  gemm.start = packed.at<int32_t>("start");
  gemm.groups = packed.find<int32_t>("groups");
  gemm.group_starts = packed.find<int32_t>("group_starts");
  gemm.epilogue = int8_epilogue(problem, residual);
  gemm.epilogue.scale = packed.at<float>("scale");
  gemm.epilogue.bias = packed.at<float>("bias");
  return gemm;
}

Epilogue int8_epilogue(const Problem& problem, DType residual) {
  const double steps = int8_unit(problem);
  Epilogue end;
  end.activation = problem.layer->post.activation;
  if (end.activation.kind == ActivationKind::clamp) {
    end.activation.a = static_cast<float>(static_cast<double>(end.activation.a) * steps);
    end.activation.b = static_cast<float>(static_cast<double>(end.activation.b) * steps);
  }
  if (const Quantization* q = problem.out().quantization.get()) {
    end.dst = quantized_format(*q);
    if (in_steps(problem)) end.dst.scale = 1;
  }
  if (const Quantization* first = problem.layer->post.quantize_first.get()) {
    const int32_t zero = first->zero_points[0];
    end.rounded = {static_cast<float>(first->least - zero), static_cast<float>(first->most - zero),
                   static_cast<float>(static_cast<double>(first->scales[0]) * steps)};
  }
  if (problem.layer->post.residual && residual == DType::qint8) {
    const Quantization& q = *problem.in.back().quantization;
    end.residual.elements = quantized_format(q);
    end.residual.elements.scale = static_cast<float>(static_cast<double>(q.scales[0]) * steps);
  }
  return end;
}

GemmInt8 int8_group(const GemmInt8& gemm, const Int8Shape& shape, int64_t group) {
  GemmInt8 one = gemm;
  one.b += static_cast<size_t>(group) * gemm_int8_packed_bytes(gemm.n, gemm.k);
  one.start += group * shape.padded();
  if (one.groups != nullptr) one.group_starts += group * (shape.padded() / GemmInt8::block);
  one.epilogue.scale += group * shape.padded();
  one.epilogue.bias += group * shape.padded();
  return one;
}

}  // namespace softneuro
