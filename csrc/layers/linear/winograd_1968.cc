// Rows x weights with additions for some of the multiplications.
#include <algorithm>

#include "kernels/conv_winograd_1968/conv_winograd_1968.h"
#include "layers/linear/rows.h"
#include "layers/products/winograd_1968.h"
#include "layers/shared/kernel_sizes.h"

namespace softneuro {
namespace {

class PreparedWinograd1968Linear final : public PreparedSplit {
 public:
  PreparedWinograd1968Linear(const Problem& problem, const ConvWinograd1968Kernels& kernels,
                             const PointwiseShape& shape, const Winograd1968Params& params,
                             std::shared_ptr<const Packed> packed)
      : PreparedSplit(problem, std::move(packed)), kernels_(kernels) {
    const LinearParams p = linear_params(*problem.layer, problem.in[0]);
    const SplitBy by = parse_split(params.split);
    args_.shape = shape;
    args_.weights = packed_->at<float>("weights");
    args_.epilogue.activation = problem.layer->post.activation;
    if (p.rows * p.k == 0) return;
    args_.row_block = static_cast<int>(std::min<int64_t>(params.rows, p.rows));
    split_ = split_linear(p, winograd_1968_panels(shape, kernels.block), problem.threads, by);
    scratch_ = round_to_line(kernels.scratch_bytes(args_));
  }

  void run(const RunArgs& args) const override {
    for_pieces(args, [&](int64_t, Range panels, Range rows, std::byte* scratch) {
      for_even_rows(args, residual_, rows, [&](const EvenRows& even) {
        ConvWinograd1968Args call = args_;
        call.src = even.src;
        call.src_row = even.src_stride;
        call.dst = even.dst;
        call.dst_row = even.dst_stride;
        call.epilogue.residual = even.residual;
        const int64_t blocks = (even.count + args_.row_block - 1) / args_.row_block;
        for (int64_t i = 0; i < blocks; ++i) {
          const Range block = split_range(even.count, blocks, i);
          const auto first = static_cast<int>(block.begin), count = static_cast<int>(block.end - block.begin);
          kernels_.prepare(call, first, count, scratch);
          kernels_.run(call, static_cast<int>(panels.begin), static_cast<int>(panels.end), first, count, scratch);
        }
      });
    });
  }

 private:
  const ConvWinograd1968Kernels& kernels_;
  ConvWinograd1968Args args_{};
};

class Winograd1968Linear final : public Winograd1968Routine {
 public:
  explicit Winograd1968Linear(Isa isa) : Winograd1968Routine("linear", isa, f32_nchw) {}

  Refusal check(const Problem& problem) const override {
    const LinearParams p = linear(problem);
    if (p.c == 0) return "has no products";
    return check_kernel_sizes({p.rows, p.k, p.c});
  }

 private:
  static LinearParams linear(const Problem& problem) { return linear_params(*problem.layer, problem.in[0]); }

  PointwiseShape shape(const Problem& problem) const override {
    const LinearParams p = linear(problem);
    return {.in_channels = static_cast<int>(p.c), .out_channels = static_cast<int>(p.k)};
  }
  int64_t pixels(const Problem& problem) const override { return linear(problem).rows; }
  int likely_split(const Problem& problem) const override { return likely_linear_split(linear(problem)); }
  std::unique_ptr<const Prepared> prepare_products(const Problem& problem, const Winograd1968Params& params,
                                                   std::shared_ptr<const Packed> packed) const override {
    return std::make_unique<PreparedWinograd1968Linear>(problem, kernels(), shape(problem), params, std::move(packed));
  }
};

}  // namespace

void linear_winograd_1968(RoutineList& list) {
  for (Isa isa : all_isas()) list.add<Winograd1968Linear>(isa);
}

}  // namespace softneuro
