// Rows x weights by products of bfloat16 tiles, three or six for each product of float32: a 1x1 convolution of one
// column of channels-last pixels.
#include "layers/linear/rows.h"
#include "layers/products/bfloat16_routine.h"
#include "layers/shared/kernel_sizes.h"

namespace softneuro {
namespace {

class PreparedBfloat16Linear final : public PreparedSplit {
 public:
  PreparedBfloat16Linear(const Problem& problem, const ConvBfloat16Kernels& kernels, const ConvBfloat16Args& args,
                         int split, std::shared_ptr<const Packed> packed)
      : PreparedSplit(problem, std::move(packed)), kernels_(kernels), args_(args) {
    const LinearParams p = linear_params(problem);
    const SplitBy by = parse_split(split);
    if (p.rows * p.k == 0) return;
    split_ = split_linear(p, conv_bfloat16_panels(args_.shape, kernels.block), problem.threads, by);
    scratch_ = round_to_line(kernels.scratch_bytes(args_));
  }

  void run(const RunArgs& args) const override {
    for_pieces(args, [&](int64_t, Range panels, Range rows, std::byte* scratch) {
      for_even_rows(args, residual_, rows, [&](const EvenRows& even) {
        ConvBfloat16Args call = args_;
        call.shape.y.in = call.shape.y.out = even.count;
        call.src = even.src;
        call.src_pixel = static_cast<size_t>(even.src_stride);
        call.dst = even.dst;
        call.dst_pixel = static_cast<size_t>(even.dst_stride);
        call.epilogue.residual = even.residual;
        kernels_.run(call, static_cast<int>(panels.begin), static_cast<int>(panels.end), 0, even.count, scratch);
      });
    });
  }

 private:
  const ConvBfloat16Kernels& kernels_;
  ConvBfloat16Args args_;
};

class Bfloat16Linear final : public Bfloat16Routine {
 public:
  Bfloat16Linear(Isa isa, int parts) : Bfloat16Routine("linear", isa, f32_nchw, parts) {}

 private:
  Refusal is_convolution(const Problem& problem) const override {
    const LinearParams p = linear_params(problem);
    return check_kernel_sizes({p.rows, p.k, p.c});
  }

  ConvBfloat16Shape shape(const Problem& problem) const override {
    const LinearParams p = linear_params(problem);
    const auto rows = static_cast<int>(p.rows);
    return {.in_channels = static_cast<int>(p.c),
            .out_channels = static_cast<int>(p.k),
            .y = {.in = rows, .out = rows},
            .x = {.in = 1, .out = 1}};
  }

  int likely_split(const Problem& problem) const override { return likely_linear_split(linear_params(problem)); }

  std::unique_ptr<const Prepared> prepare_tiles(const Problem& problem, const ConvBfloat16Args& args, int split,
                                                std::shared_ptr<const Packed> packed) const override {
    return std::make_unique<PreparedBfloat16Linear>(problem, kernels(), args, split, std::move(packed));
  }
};

}  // namespace

void linear_bfloat16(RoutineList& list) { add_bfloat16_routines<Bfloat16Linear>(list); }

}  // namespace softneuro
