// The input is brought to bytes whose channels are side by side, all of it by one scale. Then windows are copied to
// rows, a strip of pixels at a time, which are multiplied with the weights; 1x1 kernels need no copy.
#include <algorithm>

#include "layers/contract/params.h"
#include "layers/conv2d/byte_windows.h"
#include "layers/conv2d/shapes.h"
#include "layers/dynamic_conv2d/dynamic_conv2d.h"
#include "layers/shared/grid.h"

namespace softneuro {
namespace {

// rows: pixels of a strip.
SN_PARAMS(DynamicConvParams, rows, split);

const Quantization& weight_quantization(const Problem& problem) {
  return *problem.layer->weight("weight")->desc().quantization;
}

class PreparedDynamicInt8Conv2d final : public PreparedSplit {
 public:
  PreparedDynamicInt8Conv2d(const Problem& problem, Isa isa, const DynamicConvParams& params,
                            std::shared_ptr<const Packed> packed)
      : PreparedSplit(problem, std::move(packed)),
        all_(dynamic_conv2d_params(*problem.layer, problem.in[0])),
        p_(all_.size),
        shape_(int8_shape(p_)),
        gemm_kernels_(*gemm_int8_kernels(isa)),
        row_kernels_(*dynamic_rows_kernels(vectors_of(isa))),
        to_bytes_(quantize_kernels(vectors_of(isa))->to_bytes),
        zero_(weight_quantization(problem).zero_points[0]) {
    if (p_.empty()) return;
    direct_ = p_.pointwise() && p_.sh == 1 && p_.sw == 1 && p_.group_c() % GemmInt8::group == 0;
    rows_ = std::min<int64_t>(params.rows, p_.oh * p_.ow);
    gemm_ = int8_gemm(problem, shape_, *packed_, DType::float32);
    gemm_.m = narrow(direct_ ? p_.oh * p_.ow : rows_);
    gemm_.a_stride = direct_ ? p_.c : gemm_.k;
    gemm_.dst_stride = p_.k;
    windows_ = ByteWindows(p_, gemm_.k);
    const double outputs = static_cast<double>(p_.n * p_.k * p_.oh * p_.ow);
    const double bytes = 4 * outputs + static_cast<double>(p_.n * p_.c * p_.h * p_.w + shape_.outputs() * shape_.k);
    split_ = WorkSplit(p_.n * p_.groups, shape_.padded() / GemmInt8::block, p_.oh * p_.ow,
                       worth_threads(0.5 * outputs * static_cast<double>(shape_.k), bytes, problem.threads),
                       parse_split(params.split));
    image_ = p_.h * p_.w * p_.c;
    quantizing_ = std::min(p_.n * p_.h, task_count(p_.n * image_, problem.threads));
    ranges_ = windows_.bytes(0) + round_to_line(static_cast<size_t>(p_.n * image_));
    columns_ = direct_ ? 0 : windows_.bytes(rows_);
    folded_ = columns_ + round_to_line(zero_ == 0 ? 0 : static_cast<size_t>(gemm_.m) * sizeof(int32_t));
    kernel_ = folded_ + 2 * padded_bytes();
    scratch_ = kernel_ + round_to_line(gemm_kernels_.scratch_bytes(gemm_));
  }

  bool works_on_residual() const override { return true; }
  WorkspaceSize workspace() const override {
    if (p_.empty()) return {};
    return {.shared = ranges_ + static_cast<size_t>(quantizing_) * sizeof(FloatRange),
            .task = scratch_,
            .tasks = split_.tasks};
  }

  void run(const RunArgs& args) const override {
    if (p_.empty()) return;
    auto* ranges = reinterpret_cast<FloatRange*>(args.workspace.shared() + ranges_);
    const auto for_rows = [&](const auto& body) {
      args.parallel_for(quantizing_, [&](int64_t task) {
        const Range rows = split_range(p_.n * p_.h, quantizing_, task);
        for (int64_t row = rows.begin; row < rows.end; ++row) body(task, row);
      });
    };
    const int64_t count = p_.w * p_.c;
    const auto src = [&](int64_t row) {
      return args.in[0].f32() + row / p_.h * args.in[0].strides[0] + row % p_.h * count;
    };
    std::fill_n(ranges, quantizing_, FloatRange{0, 0});
    for_rows([&](int64_t task, int64_t row) { include(ranges[task], row_kernels_.range(src(row), count)); });
    FloatRange all{0, 0};
    for (int64_t i = 0; i < quantizing_; ++i) include(all, ranges[i]);
    const QuantizeSteps found = all_.steps(all);
    QuantizeSteps steps = found;
    steps.zero += all_.moved_by(), steps.least += all_.moved_by(), steps.most += all_.moved_by();
    for_rows([&](int64_t, int64_t row) { to_bytes_(steps, src(row), bytes_of(args) + row * count, count); });
    for_pieces(args, [&](int64_t index, Range panels, Range pixels, std::byte* scratch) {
      const int64_t image = index / p_.groups, group = index % p_.groups;
      const GemmInt8 call = folded(group, panels, found, scratch + folded_);
      const int64_t step = direct_ ? pixels.end - pixels.begin : rows_;
      for (int64_t begin = pixels.begin; begin < pixels.end; begin += step) {
        run_strip(args, call, image, group, panels, {begin, std::min(begin + step, pixels.end)}, steps.zero, scratch);
      }
    });
  }

 private:
  size_t padded_bytes() const { return static_cast<size_t>(shape_.padded()) * sizeof(float); }
  uint8_t* bytes_of(const RunArgs& args) const { return reinterpret_cast<uint8_t*>(args.workspace.shared()); }

  // A group's arguments, with the scale and zero point of the run.
  GemmInt8 folded(int64_t group, Range panels, const QuantizeSteps& steps, std::byte* scratch) const {
    GemmInt8 call = int8_group(gemm_, shape_, group);
    auto* start = reinterpret_cast<int32_t*>(scratch);
    auto* scale = reinterpret_cast<float*>(scratch + padded_bytes());
    const int64_t first = panels.begin * GemmInt8::block;
    DynamicRow end;
    end.row = steps.scale, end.zero = steps.zero;
    end.columns = packed_->at<int32_t>("columns") + group * shape_.padded() + first;
    end.scale = call.epilogue.scale + first;
    row_kernels_.fold(end, call.start + first, start + first, scale + first,
                      (panels.end - panels.begin) * GemmInt8::block);
    call.start = start;
    call.epilogue.scale = scale;
    return call;
  }

  void run_strip(const RunArgs& args, GemmInt8 call, int64_t image, int64_t group, Range panels, Range pixels,
                 int32_t outside, std::byte* scratch) const {
    const TensorView& out = args.out;
    const uint8_t* src = bytes_of(args) + image * image_ + group * p_.group_c();
    call.m = static_cast<int>(pixels.end - pixels.begin);
    if (direct_) {
      call.a = src + pixels.begin * p_.c;
    } else {
      auto* columns = reinterpret_cast<uint8_t*>(scratch);
      const uint8_t* end = bytes_of(args) + p_.n * image_ + windows_.bytes(0);
      windows_.copy(src, end, static_cast<uint8_t>(outside), pixels, columns);
      call.a = columns;
    }
    if (zero_ != 0) {
      auto* starts = reinterpret_cast<int32_t*>(scratch + columns_);
      const int32_t zeros = narrow(shape_.k) * outside;
      for (int row = 0; row < call.m; ++row) {
        starts[row] = -zero_ * (row_kernels_.sum(call.a + row * call.a_stride, shape_.k) - zeros);
      }
      call.row_start = starts;
    }
    const int64_t at = pixels.begin * p_.k + group * p_.group_k();
    call.dst = out.f32() + image * out.strides[0] + at;
    if (residual_) {
      const TensorView& residual = args.in[1];
      call.epilogue.residual.data = residual.at(image * residual.strides[0] + at);
    }
    gemm_kernels_.run(call, static_cast<int>(panels.begin), static_cast<int>(panels.end), 0, call.m, scratch + kernel_);
  }

  DynamicConv2dParams all_;
  Conv2dParams p_;
  ByteWindows windows_;
  Int8Shape shape_;
  const GemmInt8Kernels& gemm_kernels_;
  const DynamicRowsKernels& row_kernels_;
  decltype(QuantizeKernels::to_bytes) to_bytes_;
  bool direct_ = false;
  int32_t zero_;  // of the weights
  GemmInt8 gemm_;
  int64_t rows_ = 0, image_ = 0;
  int64_t quantizing_ = 0;                        // tasks
  size_t ranges_ = 0;                             // where they begin in what tasks share
  size_t columns_ = 0, folded_ = 0, kernel_ = 0;  // bytes of a task
};

class DynamicInt8Conv2d final : public Routine {
 public:
  explicit DynamicInt8Conv2d(Isa isa)
      : Routine({.layer_type = "dynamic_conv2d",
                 .algorithm = "int8",
                 .isa = isa,
                 .in = f32_nchw.with(Layout::nhwc()),
                 .out = f32_nchw.with(Layout::nhwc())}) {}

  Refusal check(const Problem& problem) const override {
    const Conv2dParams p = size_of(problem);
    const ConstantData& weight = *problem.layer->weight("weight");
    if (const Refusal refusal = check_weight(weight, 0); !refusal.accepted()) return refusal;
    if (!weight.desc().quantization->is_signed()) return "the weights' bytes are not signed";
    if (const int64_t k = int8_shape(p).k; k > GemmInt8::most_k / 2) {
      return "sums of " + std::to_string(k) + " products may overflow";
    }
    if (static_cast<size_t>(p.n * p.h * p.w * p.c) > most_scratch / 2) return "too many bytes between";
    return check_int_sizes(p);
  }

  std::vector<std::string> param_names() const override { return DynamicConvParams::names(); }
  std::vector<Tuning> tunings(const Problem& problem) const override {
    const Conv2dParams p = size_of(problem);
    const int split = likely_split(p.oh * p.ow);
    const int64_t bytes = std::max<int64_t>(int8_shape(p).k, 1);
    const int rows = static_cast<int>(std::clamp<int64_t>(l2_bytes() / 4 / bytes / 16 * 16, 16, 512));
    std::vector<Tuning> list{DynamicConvParams{rows, split}};
    if (problem.threads > 1) list.push_back(DynamicConvParams{rows, 1 - split});
    return list;
  }

  std::string pack_key(const Problem& problem, const Tuning&) const override {
    return dynamic_conv2d_params(*problem.layer, problem.in[0]).moved_by() == 0 ? "" : "signed";
  }
  Packing packing(const Problem& problem, const Tuning&) const override {
    return dynamic_int8_packing(int8_shape(size_of(problem)));
  }
  void pack(const Problem& problem, const Tuning&, Packed& to) const override {
    const DynamicConv2dParams p = dynamic_conv2d_params(*problem.layer, problem.in[0]);
    pack_dynamic_int8(problem, int8_shape(p.size), filter_rows(problem, p.size).data(), p.moved_by(), to);
  }

  std::unique_ptr<const Prepared> prepare(const Problem& problem, const Tuning& tuning,
                                          std::shared_ptr<const Packed> packed) const override {
    const DynamicConvParams params = DynamicConvParams::of(tuning);
    parse_positive("rows", params.rows);
    return std::make_unique<PreparedDynamicInt8Conv2d>(problem, info().isa, params, std::move(packed));
  }

 private:
  static Conv2dParams size_of(const Problem& problem) {
    return dynamic_conv2d_params(*problem.layer, problem.in[0]).size;
  }
};

}  // namespace

void dynamic_conv2d_int8(RoutineList& list) {
  for (const Isa isa : int8_isas()) list.add<DynamicInt8Conv2d>(isa);
}

}  // namespace softneuro
