// depthwise_block whose first stage is a net's first convolution, in bands of output rows: the convolution's rows,
// which are several times the image, are filtered while they are in cache. Any routine of conv2d or image_conv that
// can be asked for rows may make one of these; listed below are those that won somewhere.
#include <algorithm>

#include "layers/conv2d/depthwise.h"
#include "layers/conv2d/row_bands.h"
#include "layers/depthwise_block/bands.h"
#include "layers/depthwise_block/pointwise_stage.h"
#include "layers/image_conv/image_conv.h"
#include "layers/shared/images.h"

namespace softneuro {
namespace {

// The convolution with its problem, and the stages after it; stays where it is, as the problem points into it.
struct Stages {
  DepthwiseBlockStages layers;
  DepthwiseBlockParams p, later;
  Problem conv;

  explicit Stages(const Problem& problem)
      : layers(depthwise_block_stages(*problem.layer)), p(depthwise_block_params(layers, problem.in[0])), later(p) {
    if (!layers.expand) return;
    later.expand.reset();
    later.of_bytes = false;
    const Conv2dParams& d = p.depthwise;
    conv = {&*layers.expand, {problem.in[0]}, TensorDesc{Shape{d.n, d.c, d.h, d.w}}, 1};
  }
  Stages(const Stages&) = delete;
  Stages& operator=(const Stages&) = delete;
};

int project_panel(Isa isa, const DepthwiseBlockParams& p) { return widest_panel(isa, p.project ? p.project->k : 0); }
BlockPacking later_packing(Isa isa, const DepthwiseBlockParams& p) {
  return block_packing(isa, 1, project_panel(isa, p));
}

class PreparedConvBands final : public PreparedSplit {
 public:
  PreparedConvBands(const Problem& problem, const Stages& stages, Isa isa, int rows,
                    std::unique_ptr<const Prepared> conv, std::shared_ptr<const Packed> packed)
      : PreparedSplit(problem, std::move(packed)),
        band_(std::move(conv)),
        depthwise_kernels_(*conv_depthwise_kernels(isa)),
        block_(isa_block(isa)),
        p_(stages.p) {
    const Conv2dParams& d = p_.depthwise;
    depthwise_ = depthwise_args(d, stages.layers.depthwise, *part_of(packed_, "depthwise"));
    if (p_.last().empty()) return;
    split_ = WorkSplit(d.n, 1, d.oh, depthwise_block_threads(p_, problem.threads), SplitBy::rows, band_.unit());
    blocks_ = static_cast<int>(channel_blocks(d.c, block_));
    rows_ = std::min<int64_t>(rows, d.oh);
    band_.set_size(blocks_, d.w * block_, most_rows_below(d, rows_));
    depthwise_.src_plane = static_cast<size_t>(band_.plane());
    filtered_ = scratch_ = band_.bytes();
    if (p_.project) {
      const int64_t pixels = rows_ * d.ow, filtered_plane = plane_floats(pixels, block_);
      depthwise_.dst_plane = static_cast<size_t>(filtered_plane);
      project_ =
          PointwiseStage(*p_.project, *stages.layers.project, isa, project_panel(isa, p_), *part_of(packed_, "project"),
                         {.src = depthwise_.dst_plane,
                          .dst = static_cast<size_t>(d.oh * d.ow * block_),
                          .most_pixels = pixels,
                          .in_place = true});
      scratch_ += static_cast<size_t>(blocks_ * filtered_plane) * sizeof(float);
    }
  }

  void run(const RunArgs& args) const override {
    for_row_bands(args, split_, [&](int64_t image, Range rows, KeptRows& kept, std::byte* scratch) {
      run_rows(args.in[0].at(image * args.in[0].strides[0]), residual_image(args, residual_, image),
               output_image(args, image), rows, kept, scratch);
    });
  }

 private:
  void run_rows(const void* src, const float* residual, float* dst, Range rows, KeptRows& kept,
                std::byte* scratch) const {
    const Conv2dParams& d = p_.depthwise;
    auto* filtered = reinterpret_cast<float*>(scratch + filtered_);
    for (int64_t row = rows.begin; row < rows.end; row += rows_) {
      const int64_t end = std::min(row + rows_, rows.end), at = row * d.ow * block_;
      const float* residual_rows = residual != nullptr ? residual + at : nullptr;
      const Range need = rows_below(d, row, end);
      ConvDepthwiseArgs filter = depthwise_;
      filter.src = band_.fill(src, need, kept, scratch);
      filter.src_row = static_cast<int>(need.begin);
      filter.dst = p_.project ? filtered : dst + at;
      filter.dst_row = static_cast<int>(row);
      if (!p_.project) filter.epilogue.residual = residual_rows;
      depthwise_kernels_.run(filter, 0, blocks_, static_cast<int>(row), static_cast<int>(end));
      if (p_.project) {
        const StagePixels pixels{.src = filtered,
                                 .dst = dst + at,
                                 .residual = residual_rows,
                                 .count = static_cast<int>((end - row) * d.ow),
                                 .near = true};
        project_.run(pixels, 0, static_cast<int>(channel_blocks(p_.project->k, block_)), nullptr);
      }
    }
  }

  ConvBand band_;
  const ConvDepthwiseKernels& depthwise_kernels_;
  int block_;
  DepthwiseBlockParams p_;
  ConvDepthwiseArgs depthwise_;
  PointwiseStage project_;
  int blocks_ = 0;       // between the stages
  int64_t rows_ = 1;     // of a band
  size_t filtered_ = 0;  // where they are in scratch, behind the band
};

class DepthwiseBlockConvBands final : public RowBandsRoutine<Stages> {
 public:
  explicit DepthwiseBlockConvBands(std::unique_ptr<const Routine> conv)
      : RowBandsRoutine("depthwise_block", std::move(conv)) {}

  Refusal check(const Problem& problem) const override {
    const Stages stages(problem);
    if (!stages.p.expand) return "has no first stage";
    const std::string& first = stages.layers.expand->type;
    if (conv().info().layer_type != first) return "its first stage is a " + first;
    if (const Refusal later = check_later_stages(stages.p); !later.accepted()) return later;
    return conv().check(stages.conv);
  }
  std::vector<Tuning> tunings(const Problem& problem) const override {
    const Stages stages(problem);
    const int band = rows_in_l2(stages.p, isa_block(vectors()));
    // A band is too few rows for the convolution's own tunings to differ.
    const Tuning tuning = conv().tunings(stages.conv)[0];
    std::vector<Tuning> list{BandTuning{band, tuning}};
    if (band > 4) list.push_back(BandTuning{band / 4 * 2, tuning});
    return list;
  }

  Packing packing(const Problem& problem, const Tuning& tuning) const override {
    const Stages stages(problem);
    return Packing()
        .add("conv", conv().packing(stages.conv, BandTuning::of(tuning).conv))
        .add("later", stages_packing(stages.layers, stages.later, later_packing(vectors(), stages.p)));
  }
  void pack(const Problem& problem, const Tuning& tuning, Packed& to) const override {
    const Stages stages(problem);
    Packed first = to.part("conv"), later = to.part("later");
    conv().pack(stages.conv, BandTuning::of(tuning).conv, first);
    pack_stages(stages.layers, stages.later, later_packing(vectors(), stages.p), later);
  }
  std::unique_ptr<const Prepared> prepare(const Problem& problem, const Tuning& tuning,
                                          std::shared_ptr<const Packed> packed) const override {
    const Stages stages(problem);
    const auto params = BandTuning::of(tuning);
    return std::make_unique<PreparedConvBands>(problem, stages, vectors(), params.band,
                                               conv().prepare(stages.conv, params.conv, part_of(packed, "conv")),
                                               part_of(packed, "later"));
  }

 private:
  Isa vectors() const { return vectors_of(info().isa); }
};

}  // namespace

void depthwise_block_conv_bands(RoutineList& list) {
  RoutineList convs;
  conv2d_first(convs);
  image_conv_rows(convs);
  for (auto& conv : convs.take()) {
    if (conv->info().algorithm == "first") list.add<DepthwiseBlockConvBands>(std::move(conv));
  }
}

}  // namespace softneuro
