// The first two stages of depthwise_block by panels of the channels between them: what is expanded of a few channels is
// filtered while it is near, over the whole image. Threads share channels, which small maps have more of than rows.
#include <algorithm>

#include "layers/contract/params.h"
#include "layers/conv2d/depthwise.h"
#include "layers/depthwise_block/bands.h"
#include "layers/depthwise_block/pointwise_stage.h"
#include "layers/shared/images.h"
#include "layers/shared/split.h"

namespace softneuro {
namespace {

SN_PARAMS(PanelsParams, panel);  // output channel blocks of the 1x1 stage that share a pass over its input

class PreparedPanels final : public PreparedSplit {
 public:
  PreparedPanels(const Problem& problem, Isa isa, int panel, std::shared_ptr<const Packed> packed)
      : PreparedSplit(problem, std::move(packed)), depthwise_kernels_(*conv_depthwise_kernels(isa)) {
    const DepthwiseBlockStages stages = depthwise_block_stages(*problem.layer);
    const DepthwiseBlockParams p = depthwise_block_params(stages, problem.in[0]);
    const Conv2dParams& d = p.depthwise;
    depthwise_ = depthwise_args(d, stages.depthwise, *part_of(packed_, "depthwise"));
    if (d.empty()) return;
    const int block = isa_block(isa);
    blocks_ = static_cast<int>(channel_blocks(d.c, block));
    plane_ = plane_floats(d.h * d.w, block);
    depthwise_.src_plane = static_cast<size_t>(plane_);
    expand_ = PointwiseStage(*p.expand, *stages.expand, isa, panel, *part_of(packed_, "expand"),
                             {.src = static_cast<size_t>(d.h * d.w * block),
                              .dst = depthwise_.src_plane,
                              .most_pixels = d.h * d.w,
                              .in_place = false});
    // Work is cut by panels alone: rows of the second stage reach beyond those of the first.
    const int threads = depthwise_block_threads(p, problem.threads);
    split_ = WorkSplit(d.n, ceil_div(blocks_, panel), 1, threads, SplitBy::panels, 1);
    scratch_ = static_cast<size_t>(plane_ * std::min(panel, blocks_)) * sizeof(float);
  }

  void run(const RunArgs& args) const override {
    for_pieces(args, [&](int64_t image, Range panels, Range, std::byte* of_task) {
      auto* const scratch = reinterpret_cast<float*>(of_task);
      ConvDepthwiseArgs filter = depthwise_;
      filter.dst = output_image(args, image);
      filter.epilogue.residual = residual_image(args, residual_, image);
      StagePixels pixels{.src = input_image(args, 0, image),
                         .dst = nullptr,
                         .residual = nullptr,
                         .count = filter.h * filter.w,
                         .near = false};
      for (int64_t index = panels.begin; index < panels.end; ++index) {
        const int first = static_cast<int>(index) * expand_.panel();
        const int end = std::min(first + expand_.panel(), blocks_);
        // Both kernels count blocks from the image's first one, which lies before the scratch.
        const std::ptrdiff_t before = first * plane_;
        pixels.dst = scratch - before;
        pixels.near = index > panels.begin;
        filter.src = scratch - before;
        expand_.run(pixels, first, end, nullptr);
        depthwise_kernels_.run(filter, first, end, 0, filter.out_h);
      }
    });
  }

 private:
  const ConvDepthwiseKernels& depthwise_kernels_;
  PointwiseStage expand_;
  ConvDepthwiseArgs depthwise_;
  int blocks_ = 0;     // between the stages
  int64_t plane_ = 0;  // floats of a block in scratch
};

class DepthwiseBlockPanels final : public Routine {
 public:
  explicit DepthwiseBlockPanels(Isa isa)
      : Routine({.layer_type = "depthwise_block",
                 .algorithm = "panels",
                 .isa = isa,
                 .in = f32_blocked(isa_block(isa)),
                 .out = f32_blocked(isa_block(isa))}) {}

  Refusal check(const Problem& problem) const override {
    const DepthwiseBlockParams p = params(problem);
    if (!p.expand || p.project) return "is not a 1x1 and a depthwise stage";
    return check_pointwise_block(p);
  }

  std::vector<std::string> param_names() const override { return PanelsParams::names(); }
  std::vector<Tuning> tunings(const Problem& problem) const override {
    const int64_t channels = params(problem).expand->k, blocks = channel_blocks(channels, info().in.layout.block);
    const int wide = widest_panel(info().isa, channels);
    std::vector<Tuning> list{PanelsParams{wide}};
    // The widest that deals evenly.
    for (int panel = wide; panel > 1; --panel) {
      if (ceil_div(blocks, panel) % problem.threads != 0) continue;
      if (panel != wide) list.push_back(PanelsParams{panel});
      break;
    }
    return list;
  }

  Packing packing(const Problem& problem, const Tuning& tuning) const override {
    return depthwise_block_packing(problem, block_packing(info().isa, checked(tuning), 1));
  }
  void pack(const Problem& problem, const Tuning& tuning, Packed& to) const override {
    pack_depthwise_block(problem, block_packing(info().isa, checked(tuning), 1), to);
  }
  std::unique_ptr<const Prepared> prepare(const Problem& problem, const Tuning& tuning,
                                          std::shared_ptr<const Packed> packed) const override {
    return std::make_unique<PreparedPanels>(problem, info().isa, checked(tuning), std::move(packed));
  }

 private:
  static DepthwiseBlockParams params(const Problem& problem) {
    return depthwise_block_params(depthwise_block_stages(*problem.layer), problem.in[0]);
  }
  int checked(const Tuning& tuning) const {
    return parse_within("panel", PanelsParams::of(tuning).panel, 1, conv_direct_kernels(info().isa)->max_panel);
  }
};

}  // namespace

void depthwise_block_panels(RoutineList& list) {
  for (Isa isa : all_isas()) list.add<DepthwiseBlockPanels>(isa);
}

}  // namespace softneuro
