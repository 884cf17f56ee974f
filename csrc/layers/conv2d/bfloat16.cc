// Convolution on nchw{c}c blobs by products of bfloat16 tiles, three or six for each product of float32.
#include <algorithm>

#include "layers/bfloat16_weights.h"
#include "layers/conv2d/blocked.h"
#include "layers/gemm_tasks.h"

namespace softneuro {
namespace {

// Pixels of 1x1 kernels are one long column, so that no row's end leaves a tile unfilled.
ConvBfloat16Shape bfloat16_shape(const Conv2dParams& p, int parts, int panel) {
  const auto narrow = [](int64_t value) { return static_cast<int>(value); };
  ConvBfloat16Shape shape{.parts = parts,
                          .panel = panel,
                          .in_channels = narrow(p.c),
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

// Bytes of the split input that one more row of a band takes.
int64_t row_bytes(const ConvBfloat16Shape& s, int block) {
  const int64_t pixels = int64_t{s.x.samples(s.x.out)} * s.x.phases() * s.y.phases();
  return pixels * round_up(s.in_channels, 2 * block) * 2 * s.parts;
}

class PreparedBfloat16 final : public Prepared {
 public:
  PreparedBfloat16(const Problem& problem, const ConvBfloat16Kernels& kernels, int parts, const Tuning& tuning,
                   std::shared_ptr<const Packed> packed)
      : packed_(std::move(packed)), kernels_(kernels), residual_(problem.layer->post.residual) {
    const Conv2dParams p = conv2d_params(problem);
    args_ = bfloat16_args(bfloat16_shape(p, parts, tuning[2]), kernels.block, *problem.layer, packed_.get());
    if (p.empty()) return;
    args_.rows = std::min(tuning[0], args_.shape.y.out);
    split_ = WorkSplit(p.n, conv_bfloat16_panels(args_.shape, kernels.block), args_.shape.y.out,
                       worth_threads(p, problem.threads), parse_split(tuning[1]));
    scratch_ = round_to_line(kernels.scratch_bytes(args_.shape, args_.rows));
  }

  bool works_on_residual() const override { return true; }
  size_t workspace() const override { return static_cast<size_t>(split_.tasks) * scratch_; }

  void run(const RunArgs& args) const override {
    args.parallel_for(split_.tasks, [&](int64_t task) {
      split_.for_task(task, [&](int64_t image, Range panels, Range rows) {
        ConvBfloat16Args call = args_;
        call.src = args.in[0].f32() + image * args.in[0].batch_stride;
        call.dst = args.out.f32() + image * args.out.batch_stride;
        if (residual_) call.epilogue.residual = args.in[1].f32() + image * args.in[1].batch_stride;
        kernels_.run(call, static_cast<int>(panels.begin), static_cast<int>(panels.end), static_cast<int>(rows.begin),
                     static_cast<int>(rows.end), args.workspace + static_cast<size_t>(task) * scratch_);
      });
    });
  }

 private:
  std::shared_ptr<const Packed> packed_;
  const ConvBfloat16Kernels& kernels_;
  ConvBfloat16Args args_{};
  WorkSplit split_;
  bool residual_;
  size_t scratch_ = 0;  // bytes of a task
};

class Bfloat16Conv2d final : public Routine {
 public:
  Bfloat16Conv2d(Isa isa, int parts)
      : Routine({.layer_type = "conv2d",
                 .algorithm = bfloat16_name(parts),
                 .isa = isa,
                 .in = f32_blocked(isa_block(isa)),
                 .out = f32_blocked(isa_block(isa)),
                 .error = ErrorClass::bfloat16,
                 .spreads_nonfinite = true}),
        parts_(parts) {}

  Refusal check(const Problem& problem) const override {
    const Conv2dParams p = conv2d_params(problem);
    if (p.groups != 1) return "has groups";
    const Refusal sizes = check_int_sizes(p);
    if (!sizes.accepted()) return sizes;
    // Of one output row.
    const ConvBfloat16Shape shape = shape_of(p);
    constexpr int64_t most_scratch = 1 << 28;
    if (row_bytes(shape, block()) * shape.y.samples(1) > most_scratch) return "needs more than 256 MiB of scratch";
    return {};
  }

  // Only where there are instructions for it: in plain code it is there to be tested on any machine.
  bool promising(const Problem& problem) const override {
    return info().isa == Isa::amx && conv2d_params(problem).c >= block();
  }

  // Output rows of a band, how work is dealt to threads, output blocks that share a pass over the input.
  std::vector<std::string> param_names() const override { return {"rows", "split", "panel"}; }

  std::vector<Tuning> tunings(const Problem& problem) const override {
    const Conv2dParams p = conv2d_params(problem);
    const ConvBfloat16Shape shape = shape_of(p);
    constexpr int pair = 2, single = 1;
    // A band's split input stays in L2 while all weights pass by, or in L1 while they come from L2.
    const auto rows = [&](size_t bytes) {
      const int64_t all = static_cast<int64_t>(bytes) / std::max<int64_t>(row_bytes(shape, block()), 1);
      const int64_t own = all - shape.y.offset(shape.y.kernel - 1);
      return static_cast<int>(std::clamp<int64_t>(own, 1, std::max(shape.y.out, 1)));
    };
    const int few = shape.x.out == 1 ? 32 : 1;  // two tiles
    const int split = p.oh * p.ow >= 28 * 28 ? 0 : 1;
    std::vector<Tuning> list;
    const auto add = [&](int wanted, int by, int panel) {
      Tuning tuning{std::clamp(wanted, 1, std::max(shape.y.out, 1)), by, panel};
      if (std::find(list.begin(), list.end(), tuning) == list.end()) list.push_back(std::move(tuning));
    };
    const int most = std::max(rows(std::max<size_t>(caches().l2, 256 << 10) / 2), few);
    add(most, split, pair);
    add(std::max(rows(std::max<size_t>(caches().l1d, 32 << 10) * 3 / 4), few), split, pair);
    if (problem.threads > 1) add(most, 1 - split, pair);
    // So few outputs that tiles hold the sums of them all: weights pass by once.
    if (shape.x.samples(shape.x.out) * shape.y.out <= 4 * block()) add(most, split, single);
    return list;
  }

  size_t packed_bytes(const Problem& problem, const Tuning&) const override {
    return bfloat16_weights_bytes(shape_of(conv2d_params(problem)), block());
  }
  std::string pack_key(const Problem&, const Tuning& tuning) const override {
    return "panel " + std::to_string(tuning[2]);
  }

  std::shared_ptr<const Packed> pack(const Problem& problem, const Tuning& tuning) const override {
    const Conv2dParams p = conv2d_params(problem);
    return pack_bfloat16_weights(bfloat16_shape(p, parts_, checked(tuning)[2]), block(), *problem.layer);
  }

  std::unique_ptr<const Prepared> prepare(const Problem& problem, const Tuning& tuning,
                                          std::shared_ptr<const Packed> packed) const override {
    return std::make_unique<PreparedBfloat16>(problem, *conv_bfloat16_kernels(info().isa), parts_, checked(tuning),
                                              std::move(packed));
  }

  double expected_error(const Problem&, const Tuning&) const override { return bfloat16_error(parts_); }

 private:
  int block() const { return isa_block(info().isa); }
  // As far as the panel doesn't matter.
  ConvBfloat16Shape shape_of(const Conv2dParams& p) const { return bfloat16_shape(p, parts_, 1); }
  static const Tuning& checked(const Tuning& tuning) {
    if (tuning[0] < 1 || tuning[2] < 1 || tuning[2] > 2) throw Error("rows must be positive, panel 1 or 2");
    return tuning;
  }

  int parts_;
};

}  // namespace

void conv2d_bfloat16(RoutineList& list) {
  for (const int parts : {2, 3}) {
    list.add<Bfloat16Conv2d>(Isa::scalar, parts);
    if (architecture_has(Isa::amx)) list.add<Bfloat16Conv2d>(Isa::amx, parts);
  }
}

}  // namespace softneuro
