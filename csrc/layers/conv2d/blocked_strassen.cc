// 1x1 convolution on nchw{c}c blobs with fewer multiplications.
#include <algorithm>

#include "kernels/conv_strassen/conv_strassen.h"
#include "kernels/integers.h"
#include "layers/conv2d/pointwise_shape.h"
#include "layers/gemm_tasks.h"
#include "layers/packed_floats.h"
#include "layers/strassen.h"

namespace softneuro {
namespace {

class PreparedBlockedStrassen final : public Prepared {
 public:
  PreparedBlockedStrassen(const Problem& problem, const ConvStrassenKernels& kernels, const ConvStrassenTiling& tiling,
                          SplitBy by, std::shared_ptr<const Packed> packed)
      : packed_(std::move(packed)), kernels_(kernels), residual_(problem.layer->post.residual) {
    const Conv2dParams p = conv2d_params(problem);
    args_.shape = pointwise_shape(p);
    args_.tiling = tiling;
    args_.weights = packed_floats(packed_.get());
    args_.epilogue.activation = problem.layer->post.activation;
    if (problem.layer->find_weight("bias") != nullptr) {
      args_.epilogue.bias = args_.weights + conv_strassen_packed_size(args_.shape, kernels.block);
    }
    if (p.empty()) return;
    args_.tiling.row_block = static_cast<int>(std::min<int64_t>(tiling.row_block, p.oh * p.ow));  // scratch is for them
    split_ = WorkSplit(p.n, conv_strassen_panels(args_.shape, kernels.block, tiling.panel), p.oh * p.ow,
                       worth_threads(p, problem.threads), by);
    scratch_ = round_to_line(kernels.scratch_bytes(args_.shape, args_.tiling));
  }

  bool works_on_residual() const override { return true; }
  WorkspaceSize workspace() const override { return {.task = scratch_, .tasks = split_.tasks}; }

  void run(const RunArgs& args) const override {
    args.parallel_for(split_.tasks, [&](int64_t task) {
      split_.for_task(task, [&](int64_t image, Range panels, Range pixels) {
        ConvStrassenArgs call = args_;
        call.src = args.in[0].f32() + image * args.in[0].strides[0];
        call.dst = args.out.f32() + image * args.out.strides[0];
        if (residual_) call.epilogue.residual = args.in[1].f32() + image * args.in[1].strides[0];
        kernels_.run(call, static_cast<int>(panels.begin), static_cast<int>(panels.end), static_cast<int>(pixels.begin),
                     static_cast<int>(pixels.end), args.workspace.task(task));
      });
    });
  }

 private:
  std::shared_ptr<const Packed> packed_;
  const ConvStrassenKernels& kernels_;
  ConvStrassenArgs args_{};
  WorkSplit split_;
  bool residual_;
  size_t scratch_ = 0;  // bytes of a task
};

class BlockedStrassen final : public Routine {
 public:
  explicit BlockedStrassen(Isa isa)
      : Routine({.layer_type = "conv2d",
                 .algorithm = "strassen",
                 .isa = isa,
                 .in = f32_blocked(isa_block(isa)),
                 .out = f32_blocked(isa_block(isa)),
                 .error = ErrorClass::strassen,
                 .spreads_nonfinite = true}) {}

  Refusal check(const Problem& problem) const override {
    constexpr int64_t most_channels = 1 << 20;  // 224 MiB of scratch with blocks of 28 pixels
    return check_pointwise(conv2d_params(problem), most_channels);
  }

  // An eighth of the products is saved for sums of the input, and for tiles of sums that go through L1. One core of a
  // Zen 4 takes as long for these as for five multiply-adds per element of the input and ten of the output. Of few
  // pixels the packed weights, 7/4 of the layer's, are most of the traffic.
  bool promising(const Problem& problem) const override {
    const Conv2dParams p = conv2d_params(problem);
    return p.oh * p.ow >= 32 && p.k * p.c > 8 * (5 * p.c + 10 * p.k);
  }

  std::vector<std::string> param_names() const override { return {"panel", "rows", "split"}; }

  std::vector<Tuning> tunings(const Problem& problem) const override {
    const Conv2dParams p = conv2d_params(problem);
    // A block of pixels and the sums made of it should stay in L2 while every panel passes over them; but where weights
    // come from further away, they should pass by few times.
    const int64_t budget = static_cast<int64_t>(std::max<size_t>(caches().l2, 256 << 10)) / 4;
    const int64_t pixels = std::max<int64_t>(p.oh * p.ow, 1);
    const int64_t rows = std::clamp<int64_t>(budget / (std::max<int64_t>(p.c, 1) * 4) / 28 * 28, 28, 1 << 20);
    const int split = pixels >= 28 * 28 ? 0 : 1;
    const int64_t share = (pixels + problem.threads - 1) / problem.threads;  // of a thread, where rows are split
    std::vector<Tuning> list;
    const auto add = [&](int panel, int64_t wanted, int by) {
      Tuning tuning{panel, static_cast<int>(std::min(wanted, by == 0 ? share : pixels)), by};
      const bool known = std::find(list.begin(), list.end(), tuning) != list.end();
      if (panel <= kernels().max_panel && !known) list.push_back(std::move(tuning));
    };
    for (const int panel : {3, 2, 4}) add(panel, rows, split);
    add(3, 2 * rows, split);
    add(2, rows / 2, split);
    if (problem.threads > 1) add(3, rows, 1 - split), add(3, 2 * rows, 1 - split);
    return list;
  }

  size_t packed_bytes(const Problem& problem, const Tuning&) const override {
    const PointwiseShape shape = pointwise_shape(conv2d_params(problem));
    return conv_strassen_packed_size(shape, isa_block(info().isa)) * sizeof(float);
  }

  std::string pack_key(const Problem&, const Tuning& tuning) const override {
    return "panel " + std::to_string(tuning[0]);
  }

  // The products' weights, then the bias.
  std::shared_ptr<const Packed> pack(const Problem& problem, const Tuning& tuning) const override {
    const PointwiseShape shape = pointwise_shape(conv2d_params(problem));
    const int block = isa_block(info().isa), biases = round_up(shape.out_channels, block);
    const size_t weights = conv_strassen_packed_size(shape, block);
    const Constant* bias = problem.layer->find_weight("bias");
    auto packed = std::make_shared<PackedFloats>(static_cast<int64_t>(weights) + (bias != nullptr ? biases : 0));
    conv_strassen_pack(shape, block, tiling_of(tuning).panel, problem.layer->weight("weight")->values().get(),
                       packed->data());
    if (bias != nullptr) {
      float* to = packed->data() + weights;
      std::fill_n(to, biases, 0.f);
      std::copy_n((*bias)->values().get(), (*bias)->elements(), to);
    }
    return packed;
  }

  std::unique_ptr<const Prepared> prepare(const Problem& problem, const Tuning& tuning,
                                          std::shared_ptr<const Packed> packed) const override {
    return std::make_unique<PreparedBlockedStrassen>(problem, kernels(), tiling_of(tuning), parse_split(tuning[2]),
                                                     std::move(packed));
  }

  double expected_error(const Problem& problem, const Tuning&) const override {
    const Conv2dParams p = conv2d_params(problem);
    return strassen_error({.m = p.oh * p.ow, .n = p.k, .k = p.c, .depth = 1});
  }

 private:
  const ConvStrassenKernels& kernels() const { return *conv_strassen_kernels(info().isa); }

  ConvStrassenTiling tiling_of(const Tuning& tuning) const {
    const ConvStrassenTiling tiling{.panel = tuning[0], .row_block = tuning[1]};
    const int max_panel = kernels().max_panel;
    if (tiling.panel < 1 || tiling.panel > max_panel || tiling.row_block < 1) {
      throw Error("panel must be in [1, " + std::to_string(max_panel) + "], rows positive, not " +
                  std::to_string(tuning[0]) + " and " + std::to_string(tuning[1]));
    }
    return tiling;
  }
};

}  // namespace

void conv2d_blocked_strassen(RoutineList& list) {
  for (Isa isa : all_isas()) list.add<BlockedStrassen>(isa);
}

}  // namespace softneuro
