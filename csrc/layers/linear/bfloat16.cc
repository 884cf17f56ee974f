// Rows x weights by products of bfloat16 tiles, three or six for each product of float32: a 1x1 convolution of one
// column of channels-last pixels.
#include <algorithm>

#include "layers/bfloat16_weights.h"
#include "layers/conv2d/split.h"
#include "layers/gemm_tasks.h"
#include "layers/linear/linear.h"
#include "layers/linear/rows.h"
#include "layers/routine.h"

namespace softneuro {
namespace {

constexpr int tile_rows = 16;

ConvBfloat16Shape bfloat16_shape(const LinearParams& p, int parts, int panel) {
  const auto rows = static_cast<int>(p.rows);
  return {.parts = parts,
          .panel = panel,
          .in_channels = static_cast<int>(p.c),
          .out_channels = static_cast<int>(p.k),
          .y = {.in = rows, .out = rows},
          .x = {.in = 1, .out = 1}};
}

class PreparedBfloat16Linear final : public Prepared {
 public:
  PreparedBfloat16Linear(const Problem& problem, const ConvBfloat16Kernels& kernels, int parts, const Tuning& tuning,
                         std::shared_ptr<const Packed> packed)
      : packed_(std::move(packed)), kernels_(kernels), residual_(problem.layer->post.residual) {
    const LinearParams p = linear_params(*problem.layer, problem.in[0]);
    args_ = bfloat16_args(bfloat16_shape(p, parts, tuning[2]), kernels.block, *problem.layer, packed_.get());
    if (p.rows * p.k == 0) return;
    args_.rows = std::min(tuning[0], args_.shape.y.out);
    split_ = WorkSplit(1, conv_bfloat16_panels(args_.shape, kernels.block), p.rows,
                       worth_threads(2.0 * static_cast<double>(p.rows * p.k * p.c),
                                     4.0 * static_cast<double>(p.k * p.c + p.rows * (p.k + p.c)), problem.threads),
                       parse_split(tuning[1]));
    scratch_ = round_to_line(kernels.scratch_bytes(args_.shape, args_.rows));
  }

  size_t workspace() const override { return static_cast<size_t>(split_.tasks) * scratch_; }

  void run(const RunArgs& args) const override {
    const BlobRows in(args.in[0]), out(args.out), residual(args.in[residual_ ? 1 : 0]);
    args.parallel_for(split_.tasks, [&](int64_t task) {
      split_.for_task(task, [&](int64_t, Range panels, Range rows) {
        for (int64_t row = rows.begin, end; row < rows.end; row = end) {
          end = even_rows(in, out, residual_ ? &residual : nullptr, row, rows.end);
          ConvBfloat16Args call = args_;
          call.shape.y.in = call.shape.y.out = static_cast<int>(end - row);
          call.src = in.row(row);
          call.src_pixel = static_cast<size_t>(in.row_stride);
          call.dst = out.row(row);
          call.dst_pixel = static_cast<size_t>(out.row_stride);
          if (residual_) call.epilogue.residual = residual.row(row);
          kernels_.run(call, static_cast<int>(panels.begin), static_cast<int>(panels.end), 0, call.shape.y.out,
                       args.workspace + static_cast<size_t>(task) * scratch_);
        }
      });
    });
  }

 private:
  std::shared_ptr<const Packed> packed_;
  const ConvBfloat16Kernels& kernels_;
  bool residual_;
  ConvBfloat16Args args_{};
  WorkSplit split_;
  size_t scratch_ = 0;  // bytes of a task
};

class Bfloat16Linear final : public Routine {
 public:
  Bfloat16Linear(Isa isa, int parts)
      : Routine({.layer_type = "linear",
                 .algorithm = bfloat16_name(parts),
                 .isa = isa,
                 .in = f32_nchw,
                 .out = f32_nchw,
                 .error = ErrorClass::bfloat16,
                 .spreads_nonfinite = true}),
        parts_(parts) {}

  Refusal check(const Problem& problem) const override {
    const LinearParams p = params(problem);
    if (const Refusal sizes = check_gemm_sizes(p.rows, p.k, p.c); !sizes.accepted()) return sizes;
    constexpr int64_t most_scratch = 1 << 28;
    if (row_bytes(p) * 2 * tile_rows > most_scratch) return "needs more than 256 MiB of scratch";
    return {};
  }

  // Only where there are instructions for it, and for rows that fill half a tile.
  bool promising(const Problem& problem) const override {
    const LinearParams p = params(problem);
    return info().isa == Isa::amx && p.c >= block() && 2 * p.rows >= tile_rows;
  }

  // Rows of a band, how work is dealt to threads, blocks of outputs that share a pass over the rows.
  std::vector<std::string> param_names() const override { return {"rows", "split", "panel"}; }

  std::vector<Tuning> tunings(const Problem& problem) const override {
    const LinearParams p = params(problem);
    constexpr int pair = 2, single = 1;
    // A band's split rows stay in L2 while all weights pass by.
    const auto budget = static_cast<int64_t>(std::max<size_t>(caches().l2, 256 << 10)) / 2;
    const int64_t most = budget / std::max<int64_t>(row_bytes(p), 1) / (2 * tile_rows) * (2 * tile_rows);
    const auto rows =
        static_cast<int>(std::clamp<int64_t>(std::max<int64_t>(most, 2 * tile_rows), 1, std::max<int64_t>(p.rows, 1)));
    const int split = p.rows > p.k ? 0 : 1;
    std::vector<Tuning> list{{rows, split, pair}};
    if (problem.threads > 1 && p.rows >= 2 * tile_rows) list.push_back({rows, 1 - split, pair});
    // So few rows that tiles hold the sums of them all: weights pass by once.
    if (p.rows <= 4 * tile_rows) list.push_back({rows, split, single});
    return list;
  }

  size_t packed_bytes(const Problem& problem, const Tuning&) const override {
    return bfloat16_weights_bytes(bfloat16_shape(params(problem), parts_, 1), block());
  }
  std::string pack_key(const Problem&, const Tuning& tuning) const override {
    return "panel " + std::to_string(tuning[2]);
  }
  std::shared_ptr<const Packed> pack(const Problem& problem, const Tuning& tuning) const override {
    return pack_bfloat16_weights(bfloat16_shape(params(problem), parts_, checked(tuning)[2]), block(), *problem.layer);
  }

  std::unique_ptr<const Prepared> prepare(const Problem& problem, const Tuning& tuning,
                                          std::shared_ptr<const Packed> packed) const override {
    return std::make_unique<PreparedBfloat16Linear>(problem, *conv_bfloat16_kernels(info().isa), parts_,
                                                    checked(tuning), std::move(packed));
  }

  double expected_error(const Problem&, const Tuning&) const override { return bfloat16_error(parts_); }

 private:
  int block() const { return isa_block(info().isa); }
  static LinearParams params(const Problem& problem) { return linear_params(*problem.layer, problem.in[0]); }
  // Of the split input.
  int64_t row_bytes(const LinearParams& p) const {
    return round_up(static_cast<int>(p.c), 2 * block()) * int64_t{2} * parts_;
  }
  static const Tuning& checked(const Tuning& tuning) {
    if (tuning[0] < 1 || tuning[2] < 1 || tuning[2] > 2) throw Error("rows must be positive, panel 1 or 2");
    return tuning;
  }

  int parts_;
};

}  // namespace

void linear_bfloat16(RoutineList& list) {
  for (const int parts : {2, 3}) {
    list.add<Bfloat16Linear>(Isa::scalar, parts);
    if (architecture_has(Isa::amx)) list.add<Bfloat16Linear>(Isa::amx, parts);
  }
}

}  // namespace softneuro
