// depthwise_block in bands of output rows: what lies between the stages is a few rows that stay in the second cache.
#include <algorithm>

#include "layers/conv2d/row_bands.h"
#include "layers/depthwise_block/bands.h"
#include "layers/depthwise_block/packing.h"
#include "layers/packed_floats.h"

namespace softneuro {
namespace {

class PreparedBands final : public Prepared {
 public:
  PreparedBands(const Problem& problem, Isa isa, const Tuning& tuning, std::shared_ptr<const Packed> packed)
      : packed_(std::move(packed)),
        direct_(*conv_direct_kernels(isa)),
        depthwise_kernels_(*conv_depthwise_kernels(isa)),
        residual_(problem.layer->post.residual),
        rows_(tuning[0]) {
    const DepthwiseBlockStages stages = depthwise_block_stages(*problem.layer);
    p_ = depthwise_block_params(stages, problem.in[0]);
    const float* weights = packed_floats(packed_.get());
    const DepthwiseBlockPacking at(p_, direct_packing(direct_, tuning[1], tuning[2]), direct_.block);
    if (p_.expand) {
      expand_ = pointwise_args(*p_.expand, *stages.expand, tuning[1], weights + at.expand, weights + at.expand_bias);
    }
    if (p_.project) {
      project_ =
          pointwise_args(*p_.project, *stages.project, tuning[2], weights + at.project, weights + at.project_bias);
    }
    const Conv2dParams& d = p_.depthwise;
    depthwise_ = depthwise_args(d, stages.depthwise, weights + at.depthwise, weights + at.depthwise_bias);
    if (p_.last().empty()) return;
    split_ = WorkSplit(d.n, 1, d.oh, depthwise_block_threads(p_, problem.threads), SplitBy::rows, 1);
    const int block = direct_.block;
    blocks_ = static_cast<int>(channel_blocks(d.c, block));
    rows_ = static_cast<int>(std::min<int64_t>(rows_, d.oh));
    if (p_.expand) {
      expanded_plane_ = plane_floats(most_rows_below(d, rows_) * d.w, block);
      expand_.dst_plane = depthwise_.src_plane = static_cast<size_t>(expanded_plane_);
    }
    if (p_.project) {
      filtered_plane_ = plane_floats(rows_ * d.ow, block);
      depthwise_.dst_plane = project_.src_plane = static_cast<size_t>(filtered_plane_);
      project_.dst_plane = static_cast<size_t>(d.oh * d.ow * block);
    }
    if (p_.expand) expand_.src_plane = static_cast<size_t>(d.h * d.w * block);
    scratch_ = static_cast<size_t>((expanded_plane_ + filtered_plane_) * blocks_) * sizeof(float);
  }

  WorkspaceSize workspace() const override { return {.task = scratch_, .tasks = split_.tasks}; }

  void run(const RunArgs& args) const override {
    SharedWork work(split_);
    args.parallel_for(split_.tasks, [&](int64_t task) {
      auto* scratch = reinterpret_cast<float*>(args.workspace.task(task));
      KeptRows kept;  // of the expanded image in scratch
      work.for_task(task, [&](int64_t image, Range, Range rows) {
        kept.begin(image);
        const float* src = args.in[0].f32() + image * args.in[0].batch_stride;
        const float* residual = residual_ ? args.in[1].f32() + image * args.in[1].batch_stride : nullptr;
        run_rows(src, residual, args.out.f32() + image * args.out.batch_stride, rows, kept, scratch);
      });
    });
  }

 private:
  void run_rows(const float* src, const float* residual, float* dst, Range rows, KeptRows& kept, float* scratch) const {
    const Conv2dParams& d = p_.depthwise;
    float* filtered = scratch + expanded_plane_ * blocks_;
    for (int64_t row = rows.begin; row < rows.end; row += rows_) {
      const int64_t end = std::min(row + rows_, rows.end), at = row * d.ow * direct_.block;
      const float* residual_rows = residual != nullptr ? residual + at : nullptr;
      ConvDepthwiseArgs filter = depthwise_;
      filter.dst = p_.project ? filtered : dst + at;
      filter.dst_row = static_cast<int>(row);
      if (!p_.project) filter.epilogue.residual = residual_rows;
      if (p_.expand) {
        const Range need = rows_below(d, row, end);
        filter.src = scratch;
        filter.src_row = static_cast<int>(need.begin);
        // Panel by panel, so that what was expanded is filtered out of the first cache.
        const int panel = expand_.tiling.panel;
        for (int begin = 0; begin < blocks_; begin += panel) {
          const int count = std::min(panel, blocks_ - begin);
          expand(src, kept, need, begin, count, scratch);
          depthwise_kernels_.run(filter, begin, begin + count, static_cast<int>(row), static_cast<int>(end));
        }
        kept.set(need);
      } else {
        filter.src = src;
        depthwise_kernels_.run(filter, 0, blocks_, static_cast<int>(row), static_cast<int>(end));
      }
      if (p_.project) {
        ConvDirectArgs call = project_;
        call.src = filtered;
        call.src_near = true;
        call.dst = dst + at;
        call.epilogue.residual = residual_rows;
        const int panels = conv_direct_panels(call.shape, direct_.block, call.tiling.panel);
        direct_.run_pointwise(call, 0, panels, 0, static_cast<int>((end - row) * d.ow));
      }
    }
  }

  // A panel's channel blocks: rows that the band before left are moved, the others computed.
  void expand(const float* src, const KeptRows& kept, Range need, int first_block, int count, float* expanded) const {
    const int64_t row = p_.depthwise.w * direct_.block;
    float* const first = expanded + first_block * expanded_plane_;
    const int64_t begin = kept.bring(first, expanded_plane_, count, row, need);
    if (begin >= need.end) return;
    ConvDirectArgs call = expand_;
    call.src = src + begin * row;
    call.dst = expanded + (begin - need.begin) * row;
    call.src_near = first_block > 0;
    const int panel = first_block / call.tiling.panel;
    direct_.run_pointwise(call, panel, panel + 1, 0, static_cast<int>((need.end - begin) * p_.depthwise.w));
  }

  std::shared_ptr<const Packed> packed_;
  const ConvDirectKernels& direct_;
  const ConvDepthwiseKernels& depthwise_kernels_;
  bool residual_;
  int rows_;  // of a band
  DepthwiseBlockParams p_;
  ConvDirectArgs expand_{}, project_{};
  ConvDepthwiseArgs depthwise_;
  WorkSplit split_;
  int blocks_ = 0;                                   // between the stages
  int64_t expanded_plane_ = 0, filtered_plane_ = 0;  // floats of a block in scratch
  size_t scratch_ = 0;                               // bytes of a task
};

class DepthwiseBlockBands final : public Routine {
 public:
  explicit DepthwiseBlockBands(Isa isa)
      : Routine({.layer_type = "depthwise_block",
                 .algorithm = "bands",
                 .isa = isa,
                 .in = f32_blocked(isa_block(isa)),
                 .out = f32_blocked(isa_block(isa))}) {}

  Refusal check(const Problem& problem) const override { return check_pointwise_block(params(problem)); }

  // Rows of a band, and the output channel blocks that share a pass over the input of each 1x1 stage.
  std::vector<std::string> param_names() const override { return {"rows", "expand", "project"}; }
  std::vector<Tuning> tunings(const Problem& problem) const override {
    const DepthwiseBlockParams p = params(problem);
    const int rows = rows_in_l2(p, block());
    const int expand = panel(p.expand ? p.expand->k : 0), project = panel(p.project ? p.project->k : 0);
    std::vector<Tuning> list{{rows, expand, project}};
    if (rows > 4) list.push_back({4, expand, project});
    return list;
  }

  std::shared_ptr<const Packed> pack(const Problem& problem, const Tuning& tuning) const override {
    check_tuning(tuning);
    return pack_depthwise_block(problem, direct_packing(*conv_direct_kernels(info().isa), tuning[1], tuning[2]),
                                block());
  }

  std::unique_ptr<const Prepared> prepare(const Problem& problem, const Tuning& tuning,
                                          std::shared_ptr<const Packed> packed) const override {
    check_tuning(tuning);
    return std::make_unique<PreparedBands>(problem, info().isa, tuning, std::move(packed));
  }

 private:
  int block() const { return info().in.layout.block; }
  static DepthwiseBlockParams params(const Problem& problem) {
    return depthwise_block_params(depthwise_block_stages(*problem.layer), problem.in[0]);
  }

  int panel(int64_t channels) const { return widest_panel(info().isa, channels); }
  void check_tuning(const Tuning& tuning) const {
    const int most = conv_direct_kernels(info().isa)->max_panel;
    if (tuning[0] < 1 || tuning[1] < 1 || tuning[1] > most || tuning[2] < 1 || tuning[2] > most) {
      throw Error("rows must be positive, panels in [1, " + std::to_string(most) + "]");
    }
  }
};

}  // namespace

void depthwise_block_bands(RoutineList& list) {
  for (Isa isa : all_isas()) list.add<DepthwiseBlockBands>(isa);
}

}  // namespace softneuro
