// depthwise_block with its 1x1 stages by products of bfloat16 tiles. A band of output rows at a time, its input is
// split once; then, for a pair of channel blocks after the other, a few rows are expanded, filtered and split again for
// the last stage while they are in the first cache. What waits in the second cache is split values alone.
#include <algorithm>
#include <cmath>

#include "kernels/conv_bfloat16/conv_bfloat16.h"
#include "layers/conv2d/depthwise.h"
#include "layers/depthwise_block/bands.h"
#include "layers/depthwise_block/packing.h"
#include "layers/products/bfloat16_routine.h"
#include "layers/shared/images.h"
#include "layers/shared/split.h"

namespace softneuro {
namespace {

// Filtered rows that wait to be split for the last stage take a part of an L1.
constexpr int64_t waiting_bytes = 16 << 10;
constexpr int panel = 2;  // output blocks that share a pass over the input

// A 1x1 stage on one column of pixels.
ConvBfloat16Shape column_shape(const Conv2dParams& p, int parts, int64_t pixels) {
  const auto rows = static_cast<int>(pixels);
  return {.parts = parts,
          .panel = panel,
          .in_channels = static_cast<int>(p.c),
          .out_channels = static_cast<int>(p.k),
          .y = {.in = rows, .out = rows},
          .x = {.in = 1, .out = 1}};
}

BlockPacking tile_packing(int parts, const ConvBfloat16Kernels& kernels) {
  const StagePacking stage{
      .packing =
          [parts, block = kernels.block](const Conv2dParams& p, const Layer& layer) {
            Packing packing;
            packing.add("weights", conv_bfloat16_packed_bytes(column_shape(p, parts, 0), block) / sizeof(BFloat16),
                        DType::bfloat16, parts * p.c * p.k);
            add_padded(packing, "bias", layer.find_weight("bias"), round_up(p.k, block));
            return packing;
          },
      .pack =
          [parts, run = kernels.pack](const Conv2dParams& p, const Layer& layer, Packed& to) {
            run(column_shape(p, parts, 0), layer.weight("weight")->values().get(), to.at<BFloat16>("weights"));
            pack_padded(layer.find_weight("bias"), to, "bias");
          }};
  return {stage, stage, kernels.block};
}

SN_PARAMS(TilesParams, rows);  // of a band

class PreparedTiles final : public PreparedSplit {
 public:
  PreparedTiles(const Problem& problem, Isa isa, int parts, int rows, std::shared_ptr<const Packed> packed)
      : PreparedSplit(problem, std::move(packed)),
        kernels_(*conv_bfloat16_kernels(isa)),
        filter_(*conv_depthwise_kernels(vectors_of(isa))),
        block_(kernels_.block) {
    const DepthwiseBlockStages stages = depthwise_block_stages(*problem.layer);
    p_ = depthwise_block_params(stages, problem.in[0]);
    const Conv2dParams& d = p_.depthwise;
    depthwise_ = depthwise_args(d, stages.depthwise, *part_of(packed_, "depthwise"));
    if (p_.last().empty()) return;
    split_ = WorkSplit(d.n, 1, d.oh, depthwise_block_threads(p_, problem.threads), SplitBy::rows);
    rows_ = std::min<int64_t>(rows, d.oh);
    blocks_ = static_cast<int>(channel_blocks(d.c, block_));
    const auto take = [&](size_t bytes) {
      const size_t place = scratch_;
      scratch_ += round_to_line(bytes);
      return place;
    };
    const auto set_stage = [&](Stage& stage, const Conv2dParams& p, const Layer& layer, int64_t pixels,
                               const char* part) {
      const auto own = part_of(packed_, part);
      ConvBfloat16Args& args = stage.args;
      args.shape = column_shape(p, parts, p.h * p.w);
      args.rows = static_cast<int>(pixels);
      args.weights = own->at<BFloat16>("weights");
      args.epilogue = {.bias = own->at<float>("bias"), .activation = layer.post.activation};
      stage.planes = take(kernels_.planes_bytes(args.shape, args.rows));
    };
    sums_ = take(kernels_.sums_bytes);
    if (p_.expand) {
      const int64_t pixels = most_rows_below(d, rows_) * d.w, plane = plane_floats(pixels, block_);
      set_stage(expand_, *p_.expand, *stages.expand, pixels, "expand");
      expanded_ = take(static_cast<size_t>(panel * plane) * sizeof(float));
      expand_.args.dst_plane = depthwise_.src_plane = static_cast<size_t>(plane);
    }
    if (p_.project) {
      set_stage(project_, *p_.project, *stages.project, rows_ * d.ow, "project");
      const int64_t bytes = d.ow * panel * block_ * static_cast<int64_t>(sizeof(float));
      step_ = std::min(std::max<int64_t>(waiting_bytes / bytes / 2, 1) * 2, rows_);
      const int64_t plane = plane_floats(step_ * d.ow, block_);
      filtered_ = take(static_cast<size_t>(panel * plane) * sizeof(float));
      depthwise_.dst_plane = project_.args.src_plane = static_cast<size_t>(plane);
    }
  }

  void run(const RunArgs& args) const override {
    for_pieces(args, [&](int64_t image, Range, Range rows, std::byte* scratch) {
      const Call call{input_image(args, 0, image), output_image(args, image), residual_image(args, residual_, image),
                      scratch};
      const int64_t count = rows.end - rows.begin, bands = ceil_div(count, rows_);
      for (int64_t band = 0; band < bands; ++band) {
        const Range share = split_range(count, bands, band);
        run_band(call, {rows.begin + share.begin, rows.begin + share.end});
      }
    });
  }

 private:
  struct Stage {
    ConvBfloat16Args args{};
    size_t planes = 0;  // where they are in scratch
  };
  struct Call {
    const float* src;
    float* dst;
    const float* residual;
    std::byte* scratch;

    float* floats(size_t place) const { return reinterpret_cast<float*>(scratch + place); }
  };

  void run_band(const Call& call, Range band) const {
    const Conv2dParams& d = p_.depthwise;
    const Range below = rows_below(d, band.begin, band.end);
    if (p_.expand) {
      ConvBfloat16Args args = expand_.args;
      args.src = call.src;
      split(call, expand_, args, {0, channel_blocks(p_.expand->c, panel * block_)}, pixels(below, d.w),
            below.begin * d.w);
    }
    for (int block = 0; block < blocks_; block += panel) {
      const int end = std::min(block + panel, blocks_);
      if (p_.expand) {
        ConvBfloat16Args args = expand_.args;
        args.dst = expanded(call, block) - below.begin * d.w * block_;
        multiply(call, expand_, args, {block / panel, block / panel + 1}, pixels(below, d.w));
      }
      p_.project ? filter_and_split(call, band, below, block, end) : filter(call, band, below, block, end, call.dst, 0);
    }
    if (!p_.project) return;
    ConvBfloat16Args args = project_.args;
    args.dst = call.dst;
    args.epilogue.residual = call.residual;
    multiply(call, project_, args, {0, conv_bfloat16_panels(args.shape, block_)}, pixels(band, d.ow));
  }

  void filter_and_split(const Call& call, Range band, Range below, int block, int end) const {
    const int64_t width = p_.depthwise.ow;
    float* const filtered = call.floats(filtered_) - block * static_cast<int64_t>(depthwise_.dst_plane);
    for (int64_t row = band.begin; row < band.end; row += step_) {
      const Range rows{row, std::min(row + step_, band.end)};
      filter(call, rows, below, block, end, filtered, row);
      ConvBfloat16Args args = project_.args;
      args.src = filtered - row * width * block_;
      const int64_t pair = block / panel;
      split(call, project_, args, {pair, pair + 1}, pixels(rows, width), band.begin * width);
    }
  }

  // Output rows of channel blocks [begin, end), to dst, which begins with row `first` of block 0.
  void filter(const Call& call, Range rows, Range below, int begin, int end, float* dst, int64_t first) const {
    ConvDepthwiseArgs args = depthwise_;
    args.src = call.src;
    if (p_.expand) {
      args.src = expanded(call, begin);
      args.src_row = static_cast<int>(below.begin);
    }
    const int64_t at = (rows.begin - first) * p_.depthwise.ow * block_;
    args.dst = dst + at;
    args.dst_row = static_cast<int>(rows.begin);
    if (!p_.project && call.residual != nullptr) args.epilogue.residual = call.residual + at;
    filter_.run(args, begin, end, static_cast<int>(rows.begin), static_cast<int>(rows.end));
  }

  // Where the expanded rows of block 0 were, if those from `block` on are in scratch.
  float* expanded(const Call& call, int block) const {
    return call.floats(expanded_) - block * static_cast<int64_t>(expand_.args.dst_plane);
  }
  static Range pixels(Range rows, int64_t width) { return {rows.begin * width, rows.end * width}; }

  // Pixels of some pairs of blocks to planes that begin with pixel `first`.
  void split(const Call& call, const Stage& stage, const ConvBfloat16Args& args, Range pairs, Range pixels,
             int64_t first) const {
    kernels_.split_column(args, static_cast<int>(pairs.begin), static_cast<int>(pairs.end), static_cast<int>(first),
                          static_cast<int>(pixels.begin), static_cast<int>(pixels.end), call.scratch + stage.planes);
  }
  // All pixels of planes.
  void multiply(const Call& call, const Stage& stage, const ConvBfloat16Args& args, Range panels, Range pixels) const {
    const auto first = static_cast<int>(pixels.begin);
    kernels_.multiply_column(args, static_cast<int>(panels.begin), static_cast<int>(panels.end), first, first,
                             static_cast<int>(pixels.end), call.scratch + stage.planes, call.scratch + sums_);
  }

  const ConvBfloat16Kernels& kernels_;
  const ConvDepthwiseKernels& filter_;
  int block_;
  DepthwiseBlockParams p_;
  Stage expand_, project_;
  ConvDepthwiseArgs depthwise_;
  int64_t rows_ = 0, step_ = 0;                    // of a band, and filtered before they are split
  int blocks_ = 0;                                 // between the stages
  size_t sums_ = 0, expanded_ = 0, filtered_ = 0;  // where they are in scratch
};

class DepthwiseBlockTiles final : public Routine {
 public:
  DepthwiseBlockTiles(Isa isa, int parts)
      : Routine({.layer_type = "depthwise_block",
                 .algorithm = bfloat16_algorithm(parts),
                 .isa = isa,
                 .in = f32_blocked(isa_block(isa)),
                 .out = f32_blocked(isa_block(isa)),
                 .error = ErrorClass::bfloat16,
                 .spreads_nonfinite = true}),
        parts_(parts) {}

  Refusal check(const Problem& problem) const override { return check_pointwise_block(params(problem)); }
  bool promising(const Problem&) const override { return info().isa == Isa::amx; }
  double expected_error(const Problem& problem, const Tuning&) const override {
    const DepthwiseBlockParams p = params(problem);
    const double expand = p.expand ? bfloat16_error(parts_, info().isa, p.expand->c) : 0;
    const double project = p.project ? bfloat16_error(parts_, info().isa, p.project->c) : 0;
    return std::hypot(expand, project);
  }

  std::vector<std::string> param_names() const override { return TilesParams::names(); }
  std::vector<Tuning> tunings(const Problem& problem) const override {
    const DepthwiseBlockParams p = params(problem);
    const Conv2dParams& d = p.depthwise;
    const int pair = panel * isa_block(info().isa);
    // What a band has in scratch: split pixels of either stage, and a pair's expanded ones.
    const auto bytes = [&](int64_t rows) {
      const auto of = [&](int64_t pixels, int64_t channels) { return pixels * channel_blocks(channels, pair) * pair; };
      const int64_t below = most_rows_below(d, rows) * d.w;
      return (p.expand ? 2 * parts_ * of(below, p.expand->c) + 4 * of(below, 1) : 0) +
             (p.project ? 2 * parts_ * of(rows * d.ow, d.c) : 0);
    };
    int rows = 2;
    while (rows < d.oh && bytes(rows + 2) <= l2_bytes() / 2) rows += 2;
    std::vector<Tuning> list{TilesParams{rows}};
    if (rows > 4) list.push_back(TilesParams{rows / 4 * 2});
    return list;
  }

  std::string pack_key(const Problem&, const Tuning&) const override { return {}; }
  Packing packing(const Problem& problem, const Tuning&) const override {
    return depthwise_block_packing(problem, tile_packing(parts_, *conv_bfloat16_kernels(info().isa)));
  }
  void pack(const Problem& problem, const Tuning&, Packed& to) const override {
    pack_depthwise_block(problem, tile_packing(parts_, *conv_bfloat16_kernels(info().isa)), to);
  }

  std::unique_ptr<const Prepared> prepare(const Problem& problem, const Tuning& tuning,
                                          std::shared_ptr<const Packed> packed) const override {
    const int rows = parse_positive("rows", TilesParams::of(tuning).rows);
    return std::make_unique<PreparedTiles>(problem, info().isa, parts_, rows, std::move(packed));
  }

 private:
  static DepthwiseBlockParams params(const Problem& problem) {
    return depthwise_block_params(depthwise_block_stages(*problem.layer), problem.in[0]);
  }

  int parts_;
};

}  // namespace

void depthwise_block_bfloat16(RoutineList& list) { add_bfloat16_routines<DepthwiseBlockTiles>(list); }

}  // namespace softneuro
