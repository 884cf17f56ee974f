// 1x1 convolution on nchw{c}c blobs with fewer multiplications.
#include <algorithm>

#include "kernels/conv_strassen/conv_strassen.h"
#include "layers/contract/params.h"
#include "layers/conv2d/shapes.h"
#include "layers/products/strassen.h"
#include "layers/products/strassen_cost.h"
#include "layers/shared/images.h"

namespace softneuro {
namespace {

SN_PARAMS(BlockedStrassenParams, panel, rows, split);

class PreparedBlockedStrassen final : public PreparedSplit {
 public:
  PreparedBlockedStrassen(const Problem& problem, const ConvStrassenKernels& kernels,
                          const BlockedStrassenParams& params, std::shared_ptr<const Packed> packed)
      : PreparedSplit(problem, std::move(packed)), kernels_(kernels) {
    const Conv2dParams p = conv2d_params(problem);
    args_.shape = pointwise_shape(p);
    const int64_t pixels = p.oh * p.ow;
    const SplitBy by = parse_split(params.split);
    // Scratch is for the rows.
    args_.tiling = {.panel = params.panel, .row_block = static_cast<int>(std::min<int64_t>(params.rows, pixels))};
    args_.weights = packed_->at<float>("weights");
    args_.epilogue = {.bias = packed_->find<float>("bias"), .activation = problem.layer->post.activation};
    if (p.empty()) return;
    split_ = WorkSplit(p.n, conv_strassen_panels(args_.shape, kernels.block, params.panel), pixels,
                       worth_threads(p, problem.threads), by);
    scratch_ = round_to_line(kernels.scratch_bytes(args_.shape, args_.tiling));
  }

  bool works_on_residual() const override { return true; }

  void run(const RunArgs& args) const override {
    for_pieces(args, [&](int64_t image, Range panels, Range pixels, std::byte* scratch) {
      kernels_.run(for_image(args_, args, residual_, image), static_cast<int>(panels.begin),
                   static_cast<int>(panels.end), static_cast<int>(pixels.begin), static_cast<int>(pixels.end), scratch);
    });
  }

 private:
  const ConvStrassenKernels& kernels_;
  ConvStrassenArgs args_{};
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

  bool promising(const Problem& problem) const override {
    const Conv2dParams p = conv2d_params(problem);
    return conv_strassen_promises(p.oh * p.ow, p.c, p.k);
  }

  std::vector<std::string> param_names() const override { return BlockedStrassenParams::names(); }

  std::vector<Tuning> tunings(const Problem& problem) const override {
    const Conv2dParams p = conv2d_params(problem);
    // A block of pixels and the sums made of it should stay in L2 while every panel passes over them; but where weights
    // come from further away, they should pass by few times.
    const int64_t budget = l2_bytes() / 4;
    const int64_t pixels = std::max<int64_t>(p.oh * p.ow, 1);
    const int64_t rows = std::clamp<int64_t>(budget / (std::max<int64_t>(p.c, 1) * 4) / 28 * 28, 28, 1 << 20);
    const int split = likely_split(pixels);
    const int64_t share = (pixels + problem.threads - 1) / problem.threads;  // of a thread, where rows are split
    std::vector<Tuning> list;
    const auto add = [&](int panel, int64_t wanted, int by) {
      Tuning tuning = BlockedStrassenParams{panel, static_cast<int>(std::min(wanted, by == 0 ? share : pixels)), by};
      const bool known = std::find(list.begin(), list.end(), tuning) != list.end();
      if (panel <= kernels().max_panel && !known) list.push_back(std::move(tuning));
    };
    for (const int panel : {3, 2, 4}) add(panel, rows, split);
    add(3, 2 * rows, split);
    add(2, rows / 2, split);
    if (problem.threads > 1) add(3, rows, 1 - split), add(3, 2 * rows, 1 - split);
    return list;
  }

  Packing packing(const Problem& problem, const Tuning&) const override {
    const PointwiseShape shape = pointwise_shape(conv2d_params(problem));
    const int block = kernels().block;
    Packing packing;
    packing.add("weights", conv_strassen_packed_size(shape, block));
    add_bias(packing, *problem.layer, round_up(shape.out_channels, block));
    return packing;
  }
  std::string pack_key(const Problem&, const Tuning& tuning) const override {
    return "panel " + std::to_string(BlockedStrassenParams::of(tuning).panel);
  }
  void pack(const Problem& problem, const Tuning& tuning, Packed& to) const override {
    conv_strassen_pack(pointwise_shape(conv2d_params(problem)), kernels().block, checked(tuning).panel,
                       problem.layer->weight("weight")->values().get(), to.at<float>("weights"));
    pack_bias(*problem.layer, to);
  }

  std::unique_ptr<const Prepared> prepare(const Problem& problem, const Tuning& tuning,
                                          std::shared_ptr<const Packed> packed) const override {
    return std::make_unique<PreparedBlockedStrassen>(problem, kernels(), checked(tuning), std::move(packed));
  }

  double expected_error(const Problem& problem, const Tuning&) const override {
    const Conv2dParams p = conv2d_params(problem);
    return strassen_error({.m = p.oh * p.ow, .n = p.k, .k = p.c, .depth = 1});
  }

 private:
  const ConvStrassenKernels& kernels() const { return *conv_strassen_kernels(info().isa); }

  BlockedStrassenParams checked(const Tuning& tuning) const {
    const auto params = BlockedStrassenParams::of(tuning);
    parse_within("panel", params.panel, 1, kernels().max_panel);
    parse_positive("rows", params.rows);
    return params;
  }
};

}  // namespace

void conv2d_blocked_strassen(RoutineList& list) {
  for (Isa isa : all_isas()) list.add<BlockedStrassen>(isa);
}

}  // namespace softneuro
