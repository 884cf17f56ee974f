// 1x1 convolution on nchw{c}c blobs with additions for some of the multiplications.
#include <algorithm>

#include "kernels/conv_winograd_1968/conv_winograd_1968.h"
#include "layers/conv2d/shapes.h"
#include "layers/products/winograd_1968.h"
#include "layers/shared/images.h"

namespace softneuro {
namespace {

class PreparedWinograd1968 final : public PreparedSplit {
 public:
  PreparedWinograd1968(const Problem& problem, const ConvWinograd1968Kernels& kernels, const Winograd1968Params& params,
                       std::shared_ptr<const Packed> packed)
      : PreparedSplit(problem, std::move(packed)), kernels_(kernels) {
    const Conv2dParams p = conv2d_params(problem);
    args_.shape = pointwise_shape(p);
    args_.weights = packed_->at<float>("weights");
    args_.epilogue.activation = problem.layer->post.activation;
    const SplitBy by = parse_split(params.split);
    if (p.empty()) return;
    const int64_t pixels = p.oh * p.ow;
    args_.row_block = static_cast<int>(std::min<int64_t>(params.rows, pixels));
    // What is taken from another task has to be prepared again, unless all pixels are.
    constexpr int64_t few_pixels = 16, one_panel = 1;
    const int64_t unit = by == SplitBy::rows ? few_pixels : args_.row_block == pixels ? one_panel : 0;
    const int panels = winograd_1968_panels(args_.shape, kernels.block);
    split_ = WorkSplit(p.n, panels, pixels, worth_threads(p, problem.threads), by, unit);
    scratch_ = round_to_line(kernels.scratch_bytes(args_));
  }

  bool works_on_residual() const override { return true; }

  void run(const RunArgs& args) const override {
    SharedWork work(split_);
    args.parallel_for(split_.tasks, [&](int64_t task) {
      std::byte* const scratch = args.workspace.task(task);
      int64_t prepared_image = -1;
      Range prepared{};
      work.for_task(task, [&](int64_t image, Range panels, Range pixels) {
        const ConvWinograd1968Args call = for_image(args_, args, residual_, image);
        const int64_t blocks = (pixels.end - pixels.begin + args_.row_block - 1) / args_.row_block;
        for (int64_t i = 0; i < blocks; ++i) {
          const Range share = split_range(pixels.end - pixels.begin, blocks, i);
          const Range block{pixels.begin + share.begin, pixels.begin + share.end};
          const auto first = static_cast<int>(block.begin), count = static_cast<int>(block.end - block.begin);
          if (image != prepared_image || block.begin != prepared.begin || block.end != prepared.end) {
            kernels_.prepare(call, first, count, scratch);
            prepared_image = image, prepared = block;
          }
          kernels_.run(call, static_cast<int>(panels.begin), static_cast<int>(panels.end), first, count, scratch);
        }
      });
    });
  }

 private:
  const ConvWinograd1968Kernels& kernels_;
  ConvWinograd1968Args args_{};
};

class Winograd1968Conv2d final : public Winograd1968Routine {
 public:
  explicit Winograd1968Conv2d(Isa isa) : Winograd1968Routine("conv2d", isa, f32_blocked(isa_block(isa))) {}

  Refusal check(const Problem& problem) const override {
    constexpr int64_t most_channels = 1 << 20;  // 64 MiB of scratch with blocks of 16 pixels
    const Conv2dParams p = conv2d_params(problem);
    if (p.c > most_channels) return "more than " + std::to_string(most_channels) + " input channels";
    return check_pointwise(p);
  }

 private:
  PointwiseShape shape(const Problem& problem) const override { return pointwise_shape(conv2d_params(problem)); }
  int64_t pixels(const Problem& problem) const override {
    const Conv2dParams p = conv2d_params(problem);
    return p.oh * p.ow;
  }
  int likely_split(const Problem& problem) const override { return softneuro::likely_split(pixels(problem)); }
  std::unique_ptr<const Prepared> prepare_products(const Problem& problem, const Winograd1968Params& params,
                                                   std::shared_ptr<const Packed> packed) const override {
    return std::make_unique<PreparedWinograd1968>(problem, kernels(), params, std::move(packed));
  }
};

}  // namespace

void conv2d_winograd_1968(RoutineList& list) {
  for (Isa isa : all_isas()) list.add<Winograd1968Conv2d>(isa);
}

}  // namespace softneuro
