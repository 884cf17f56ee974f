#include "layers/conv2d/first.h"

#include <algorithm>

#include "layers/conv2d/rows.h"
#include "layers/gemm_tasks.h"
#include "layers/packed_floats.h"

namespace softneuro {
namespace {

constexpr int64_t max_channels = 4;

class PreparedFirst final : public PreparedConv2dRows {
 public:
  PreparedFirst(const Problem& problem, FirstConv2d::Kernel kernel, const ConvFirstArgs& args,
                std::shared_ptr<const Packed> packed)
      : packed_(std::move(packed)), kernel_(kernel), args_(args), residual_(problem.layer->post.residual) {
    const Conv2dParams p = conv2d_params(problem);
    args_.epilogue.activation = problem.layer->post.activation;
    if (p.empty()) return;
    split_ = WorkSplit(p.n, 1, p.oh, worth_threads(p, problem.threads), SplitBy::rows, 1);
    scratch_ = round_to_line(kernel.scratch_bytes(args));
  }

  WorkspaceSize workspace() const override { return {.task = scratch_, .tasks = split_.tasks}; }

  void run(const RunArgs& args) const override {
    SharedWork work(split_);
    args.parallel_for(split_.tasks, [&](int64_t task) {
      work.for_task(task, [&](int64_t image, Range, Range rows) {
        ConvFirstArgs call = args_;
        call.src = args.in[0].f32() + image * args.in[0].strides[0];
        call.dst = args.out.f32() + image * args.out.strides[0];
        if (residual_) call.epilogue.residual = args.in[1].f32() + image * args.in[1].strides[0];
        kernel_.run(call, static_cast<int>(rows.begin), static_cast<int>(rows.end), args.workspace.task(task));
      });
    });
  }

  size_t rows_scratch(int64_t plane_rows) const override { return kernel_.scratch_bytes(high(plane_rows)); }
  void run_rows(const Conv2dRows& call) const override {
    // As an image that begins with these rows.
    ConvFirstArgs args = high(call.plane_rows);
    args.pad_top -= static_cast<int>(call.rows.begin) * args.stride_h;
    args.src = call.src;
    args.dst = call.dst;
    kernel_.run(args, 0, static_cast<int>(call.rows.end - call.rows.begin), call.scratch);
  }

 private:
  ConvFirstArgs high(int64_t rows) const {
    ConvFirstArgs args = args_;
    args.out_h = static_cast<int>(rows);
    return args;
  }

  std::shared_ptr<const Packed> packed_;
  FirstConv2d::Kernel kernel_;
  ConvFirstArgs args_;
  WorkSplit split_;
  bool residual_;
  size_t scratch_ = 0;  // bytes of a task
};

class DirectFirstConv2d final : public FirstConv2d {
 public:
  explicit DirectFirstConv2d(Isa isa)
      : FirstConv2d({.layer_type = "conv2d",
                     .algorithm = "first",
                     .isa = isa,
                     .in = f32_nchw,
                     .out = f32_blocked(isa_block(isa))}) {}

 protected:
  Kernel kernel() const override {
    const ConvFirstKernels& kernels = *conv_first_kernels(info().isa);
    return {kernels.scratch_bytes, kernels.run};
  }
  size_t packed_floats(const ConvFirstArgs& args) const override { return conv_first_packed_size(args, block()); }
  void pack_weights(const ConvFirstArgs& args, const float* weights, float* packed) const override {
    conv_first_pack(args, block(), weights, packed);
  }
  int64_t copied_bytes(const Conv2dParams& p, int64_t rows) const override {
    return rows_read(p, rows) * ((p.ow - 1) * p.sw + (p.kw - 1) * p.dw + 1) * p.c * 4;
  }
};

}  // namespace

ConvFirstArgs first_args(const Conv2dParams& p) {
  const ConvDirectShape shape = direct_shape(p);
  ConvFirstArgs args;
  args.in_channels = shape.in_channels;
  args.out_channels = shape.out_channels;
  args.h = shape.h;
  args.w = shape.w;
  args.out_h = shape.out_h;
  args.out_w = shape.out_w;
  args.kernel_h = shape.kernel_h;
  args.kernel_w = shape.kernel_w;
  args.stride_h = shape.stride_h;
  args.stride_w = shape.stride_w;
  args.dilation_h = shape.dilation_h;
  args.dilation_w = shape.dilation_w;
  args.pad_top = shape.pad_top;
  args.pad_left = shape.pad_left;
  return args;
}

int64_t rows_read(const Conv2dParams& p, int64_t rows) { return (rows - 1) * p.sh + (p.kh - 1) * p.dh + 1; }

Refusal FirstConv2d::check(const Problem& problem) const {
  const Conv2dParams p = conv2d_params(problem);
  if (p.groups != 1) return "has groups";
  if (p.c > max_channels) return "has more than " + std::to_string(max_channels) + " input channels";
  return check_int_sizes(p);
}

std::vector<Tuning> FirstConv2d::tunings(const Problem& problem) const {
  // What is copied is read by each pair of output blocks and should stay in L2; less leaves more of it to the output.
  const Conv2dParams p = conv2d_params(problem);
  const auto fit = [&](size_t budget) {
    int rows = 1;
    while (rows < p.oh && copied_bytes(p, rows + 1) <= static_cast<int64_t>(budget)) ++rows;
    return rows;
  };
  const size_t l2 = std::max<size_t>(caches().l2, 256 << 10);
  const int large = fit(l2 / 4), small = fit(l2 / 16);
  if (small == large) return {{large}};
  return {{large}, {small}};
}

size_t FirstConv2d::packed_bytes(const Problem& problem, const Tuning&) const {
  const ConvFirstArgs args = first_args(conv2d_params(problem));
  return (packed_floats(args) + static_cast<size_t>(args.out_channels)) * sizeof(float);
}

std::shared_ptr<const Packed> FirstConv2d::pack(const Problem& problem, const Tuning&) const {
  const Conv2dParams p = conv2d_params(problem);
  const ConvFirstArgs args = first_args(p);
  const auto size = static_cast<int64_t>(packed_floats(args));
  const Constant* bias = problem.layer->find_weight("bias");
  const int64_t biases = bias != nullptr ? (p.k + block() - 1) / block() * block() : 0;
  auto packed = std::make_shared<PackedFloats>(size + biases);
  pack_weights(args, problem.layer->weight("weight")->values().get(), packed->data());
  if (bias != nullptr) {
    std::fill_n(packed->data() + size, biases, 0.f);
    std::copy_n((*bias)->values().get(), p.k, packed->data() + size);
  }
  return packed;
}

std::unique_ptr<const Prepared> FirstConv2d::prepare(const Problem& problem, const Tuning& tuning,
                                                     std::shared_ptr<const Packed> packed) const {
  if (tuning[0] < 1) throw Error("rows must be positive, not " + std::to_string(tuning[0]));
  ConvFirstArgs args = first_args(conv2d_params(problem));
  args.row_block = tuning[0];
  args.weights = softneuro::packed_floats(packed.get());
  if (problem.layer->find_weight("bias") != nullptr) args.epilogue.bias = args.weights + packed_floats(args);
  return std::make_unique<PreparedFirst>(problem, kernel(), args, std::move(packed));
}

void conv2d_first(RoutineList& list) {
  for (Isa isa : all_isas()) list.add<DirectFirstConv2d>(isa);
}

}  // namespace softneuro
