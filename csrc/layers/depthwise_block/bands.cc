// depthwise_block in bands of output rows: what lies between the stages is a few rows that stay in the second cache.
#include <algorithm>

#include "layers/contract/params.h"
#include "layers/conv2d/depthwise.h"
#include "layers/conv2d/row_bands.h"
#include "layers/depthwise_block/bands.h"
#include "layers/depthwise_block/pointwise_stage.h"
#include "layers/products/winograd_1968.h"
#include "layers/shared/images.h"

namespace softneuro {
namespace {

// Rows of a band, and the output channel blocks that share a pass over the input of each 1x1 stage (0: the stage has
// additions).
SN_PARAMS(BandsParams, rows, expand, project);

class PreparedBands final : public PreparedSplit {
 public:
  PreparedBands(const Problem& problem, Isa isa, const BandsParams& params, std::shared_ptr<const Packed> packed)
      : PreparedSplit(problem, std::move(packed)),
        depthwise_kernels_(*conv_depthwise_kernels(isa)),
        block_(isa_block(isa)) {
    const DepthwiseBlockStages stages = depthwise_block_stages(*problem.layer);
    p_ = depthwise_block_params(stages, problem.in[0]);
    const Conv2dParams& d = p_.depthwise;
    depthwise_ = depthwise_args(d, stages.depthwise, *part_of(packed_, "depthwise"));
    if (p_.last().empty()) return;
    split_ = WorkSplit(d.n, 1, d.oh, depthwise_block_threads(p_, problem.threads), SplitBy::rows, 1);
    blocks_ = static_cast<int>(channel_blocks(d.c, block_));
    rows_ = std::min<int64_t>(params.rows, d.oh);
    const auto take = [&](size_t bytes) {
      const size_t place = scratch_;
      scratch_ += round_to_line(bytes);
      return place;
    };
    // Blocks' planes, of so many pixels; how far they are apart is set.
    const auto take_planes = [&](int64_t pixels, size_t& apart) {
      apart = static_cast<size_t>(plane_floats(pixels, block_));
      return take(apart * static_cast<size_t>(blocks_) * sizeof(float));
    };
    if (p_.expand) {
      const int64_t pixels = most_rows_below(d, rows_) * d.w;
      expanded_ = take_planes(pixels, depthwise_.src_plane);
      expand_ = PointwiseStage(*p_.expand, *stages.expand, isa, params.expand, *part_of(packed_, "expand"),
                               {.src = static_cast<size_t>(d.h * d.w * block_),
                                .dst = depthwise_.src_plane,
                                .most_pixels = pixels,
                                .in_place = false});
      expand_scratch_ = take(expand_.scratch_bytes());
    }
    if (p_.project) {
      const int64_t pixels = rows_ * d.ow;
      filtered_ = take_planes(pixels, depthwise_.dst_plane);
      project_ = PointwiseStage(*p_.project, *stages.project, isa, params.project, *part_of(packed_, "project"),
                                {.src = depthwise_.dst_plane,
                                 .dst = static_cast<size_t>(d.oh * d.ow * block_),
                                 .most_pixels = pixels,
                                 .in_place = true});
      project_scratch_ = take(project_.scratch_bytes());
    }
  }

  void run(const RunArgs& args) const override {
    for_row_bands(args, split_, [&](int64_t image, Range rows, KeptRows& kept, std::byte* scratch) {
      run_rows(input_image(args, 0, image), residual_image(args, residual_, image), output_image(args, image), rows,
               kept, scratch);
    });
  }

 private:
  void run_rows(const float* src, const float* residual, float* dst, Range rows, KeptRows& kept,
                std::byte* scratch) const {
    const Conv2dParams& d = p_.depthwise;
    auto* const filtered = reinterpret_cast<float*>(scratch + filtered_);
    for (int64_t row = rows.begin; row < rows.end; row += rows_) {
      const int64_t end = std::min(row + rows_, rows.end), at = row * d.ow * block_;
      const float* residual_rows = residual != nullptr ? residual + at : nullptr;
      ConvDepthwiseArgs filter = depthwise_;
      filter.dst = p_.project ? filtered : dst + at;
      filter.dst_row = static_cast<int>(row);
      if (!p_.project) filter.epilogue.residual = residual_rows;
      if (p_.expand) {
        expand_and_filter(src, kept, {row, end}, filter, scratch);
      } else {
        filter.src = src;
        depthwise_kernels_.run(filter, 0, blocks_, static_cast<int>(row), static_cast<int>(end));
      }
      if (p_.project) {
        const StagePixels pixels{.src = filtered,
                                 .dst = dst + at,
                                 .residual = residual_rows,
                                 .count = static_cast<int>((end - row) * d.ow),
                                 .near = true};
        project_.prepare(pixels, scratch + project_scratch_);
        project_.run(pixels, 0, static_cast<int>(channel_blocks(p_.project->k, block_)), scratch + project_scratch_);
      }
    }
  }

  // Panel by panel, so that what was expanded is filtered out of the first cache: rows that the band before left are
  // moved, the others computed.
  void expand_and_filter(const float* src, KeptRows& kept, Range rows, ConvDepthwiseArgs& filter,
                         std::byte* scratch) const {
    const Conv2dParams& d = p_.depthwise;
    const Range need = rows_below(d, rows.begin, rows.end);
    const int64_t row = d.w * block_, plane = static_cast<int64_t>(depthwise_.src_plane);
    const int64_t missing = kept.first_missing(need);
    auto* const expanded = reinterpret_cast<float*>(scratch + expanded_);
    filter.src = expanded;
    filter.src_row = static_cast<int>(need.begin);
    StagePixels pixels{.src = src + missing * row,
                       .dst = expanded + (missing - need.begin) * row,
                       .residual = nullptr,
                       .count = static_cast<int>((need.end - missing) * d.w),
                       .near = false};
    if (pixels.count > 0) expand_.prepare(pixels, scratch + expand_scratch_);
    for (int begin = 0; begin < blocks_; begin += expand_.panel()) {
      const int end = std::min(begin + expand_.panel(), blocks_);
      kept.bring(expanded + begin * plane, plane, end - begin, row, need);
      if (pixels.count > 0) expand_.run(pixels, begin, end, scratch + expand_scratch_);
      pixels.near = true;
      depthwise_kernels_.run(filter, begin, end, static_cast<int>(rows.begin), static_cast<int>(rows.end));
    }
    kept.set(need);
  }

  const ConvDepthwiseKernels& depthwise_kernels_;
  int block_;
  DepthwiseBlockParams p_;
  PointwiseStage expand_, project_;
  ConvDepthwiseArgs depthwise_;
  int64_t rows_ = 1;                    // of a band
  int blocks_ = 0;                      // between the stages
  size_t expanded_ = 0, filtered_ = 0;  // where they are in scratch
  size_t expand_scratch_ = 0, project_scratch_ = 0;
};

class DepthwiseBlockBands final : public Routine {
 public:
  // adds: 1x1 stages may have additions for some of the multiplications, at least one has.
  DepthwiseBlockBands(Isa isa, bool adds) : Routine(bands_info(isa, adds)), adds_(adds) {}

  Refusal check(const Problem& problem) const override {
    const DepthwiseBlockParams p = stages(problem);
    if (adds_ && !p.expand && !p.project) return "has no 1x1 stage";
    return check_pointwise_block(p);
  }
  bool promising(const Problem& problem) const override {
    if (!adds_) return true;
    const DepthwiseBlockParams p = stages(problem);
    return (p.expand && winograd_1968_promises(info().isa, p.expand->k)) ||
           (p.project && winograd_1968_promises(info().isa, p.project->k));
  }
  double expected_error(const Problem& problem, const Tuning& tuning) const override {
    const DepthwiseBlockParams p = stages(problem);
    const auto params = BandsParams::of(tuning);
    double error = 0;
    if (p.expand && params.expand == added_panel) error += winograd_1968_error(p.expand->c);
    if (p.project && params.project == added_panel) error += winograd_1968_error(p.project->c);
    return error;
  }

  std::vector<std::string> param_names() const override { return BandsParams::names(); }
  std::vector<Tuning> tunings(const Problem& problem) const override {
    const DepthwiseBlockParams p = stages(problem);
    const int rows = rows_in_l2(p, block());
    std::vector<Tuning> list;
    const auto add = [&](int expand, int project) {
      list.push_back(BandsParams{rows, expand, project});
      if (rows > 4) list.push_back(BandsParams{4, expand, project});
    };
    const int expand = panel(p.expand ? p.expand->k : 0), project = panel(p.project ? p.project->k : 0);
    if (!adds_) {
      add(expand, project);
    } else if (!p.project) {
      add(added_panel, project);
    } else if (!p.expand) {
      add(expand, added_panel);
    } else {
      add(added_panel, added_panel);
      add(added_panel, project);
    }
    return list;
  }

  Packing packing(const Problem& problem, const Tuning& tuning) const override {
    return depthwise_block_packing(problem, packing_of(tuning));
  }
  void pack(const Problem& problem, const Tuning& tuning, Packed& to) const override {
    pack_depthwise_block(problem, packing_of(tuning), to);
  }

  std::unique_ptr<const Prepared> prepare(const Problem& problem, const Tuning& tuning,
                                          std::shared_ptr<const Packed> packed) const override {
    return std::make_unique<PreparedBands>(problem, info().isa, checked(tuning), std::move(packed));
  }

 private:
  static RoutineInfo bands_info(Isa isa, bool adds) {
    RoutineInfo info{.layer_type = "depthwise_block",
                     .algorithm = adds ? "bands_adds" : "bands",
                     .isa = isa,
                     .in = f32_blocked(isa_block(isa)),
                     .out = f32_blocked(isa_block(isa))};
    if (adds) info.error = ErrorClass::winograd_1968, info.spreads_nonfinite = true;
    return info;
  }
  int block() const { return info().in.layout.block; }
  static DepthwiseBlockParams stages(const Problem& problem) {
    return depthwise_block_params(depthwise_block_stages(*problem.layer), problem.in[0]);
  }

  int panel(int64_t channels) const { return widest_panel(info().isa, channels); }
  BandsParams checked(const Tuning& tuning) const {
    const auto params = BandsParams::of(tuning);
    const int most = conv_direct_kernels(info().isa)->max_panel, least = adds_ ? added_panel : 1;
    parse_positive("rows", params.rows);
    parse_within("expand", params.expand, least, most);
    parse_within("project", params.project, least, most);
    return params;
  }
  BlockPacking packing_of(const Tuning& tuning) const {
    const BandsParams params = checked(tuning);
    return block_packing(info().isa, params.expand, params.project);
  }

  bool adds_;
};

}  // namespace

void depthwise_block_bands(RoutineList& list) {
  for (Isa isa : all_isas()) {
    list.add<DepthwiseBlockBands>(isa, false);
    list.add<DepthwiseBlockBands>(isa, true);
  }
}

}  // namespace softneuro
