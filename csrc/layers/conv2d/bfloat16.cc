// Convolution on nchw{c}c blobs by products of bfloat16 tiles, three or six for each product of float32.
#include "layers/conv2d/shapes.h"
#include "layers/products/bfloat16_routine.h"
#include "layers/shared/images.h"

namespace softneuro {
namespace {

class PreparedBfloat16 final : public PreparedSplit {
 public:
  PreparedBfloat16(const Problem& problem, const ConvBfloat16Kernels& kernels, const ConvBfloat16Args& args, int split,
                   std::shared_ptr<const Packed> packed)
      : PreparedSplit(problem, std::move(packed)), kernels_(kernels), args_(args) {
    const Conv2dParams p = conv2d_params(problem);
    const SplitBy by = parse_split(split);
    if (p.empty()) return;
    split_ = WorkSplit(p.n, conv_bfloat16_panels(args_.shape, kernels.block), args_.shape.y.out,
                       worth_threads(p, problem.threads), by);
    scratch_ = round_to_line(kernels.scratch_bytes(args_));
  }

  bool works_on_residual() const override { return true; }

  void run(const RunArgs& args) const override {
    for_pieces(args, [&](int64_t image, Range panels, Range rows, std::byte* scratch) {
      kernels_.run(for_image(args_, args, residual_, image), static_cast<int>(panels.begin),
                   static_cast<int>(panels.end), static_cast<int>(rows.begin), static_cast<int>(rows.end), scratch);
    });
  }

 private:
  const ConvBfloat16Kernels& kernels_;
  ConvBfloat16Args args_;
};

class Bfloat16Conv2d final : public Bfloat16Routine {
 public:
  Bfloat16Conv2d(Isa isa, int parts) : Bfloat16Routine("conv2d", isa, f32_blocked(isa_block(isa)), parts) {}

 private:
  Refusal is_convolution(const Problem& problem) const override {
    const Conv2dParams p = conv2d_params(problem);
    return p.groups != 1 ? Refusal("has groups") : check_int_sizes(p);
  }

  // Pixels of 1x1 kernels are one long column, so that no row's end leaves a tile unfilled.
  ConvBfloat16Shape shape(const Problem& problem) const override {
    const Conv2dParams p = conv2d_params(problem);
    ConvBfloat16Shape shape{.in_channels = narrow(p.c),
                            .out_channels = narrow(p.k),
                            .y = {.in = narrow(p.h),
                                  .out = narrow(p.oh),
                                  .kernel = narrow(p.kh),
                                  .stride = narrow(p.sh),
                                  .dilation = narrow(p.dh),
                                  .pad = narrow(p.pt)},
                            .x = {.in = narrow(p.w),
                                  .out = narrow(p.ow),
                                  .kernel = narrow(p.kw),
                                  .stride = narrow(p.sw),
                                  .dilation = narrow(p.dw),
                                  .pad = narrow(p.pl)}};
    if (p.pointwise() && p.sh == 1 && p.sw == 1) {
      shape.y.in = shape.y.out = narrow(p.h * p.w);
      shape.x.in = shape.x.out = 1;
    }
    return shape;
  }

  int likely_split(const Problem& problem) const override {
    const Conv2dParams p = conv2d_params(problem);
    return softneuro::likely_split(p.oh * p.ow);
  }

  std::unique_ptr<const Prepared> prepare_tiles(const Problem& problem, const ConvBfloat16Args& args, int split,
                                                std::shared_ptr<const Packed> packed) const override {
    return std::make_unique<PreparedBfloat16>(problem, kernels(), args, split, std::move(packed));
  }
};

}  // namespace

void conv2d_bfloat16(RoutineList& list) { add_bfloat16_routines<Bfloat16Conv2d>(list); }

}  // namespace softneuro
