// Rows x weights that are zero a block of outputs at a time: a 1x1 convolution, for which some rows at a time are made
// pixels of a blocked image.
#include <algorithm>

#include "layers/linear/rows.h"
#include "layers/shared/kernel_sizes.h"
#include "layers/weights/sparse_blocks.h"

namespace softneuro {
namespace {

ConvDirectShape shape_of(const LinearParams& p, int band) {
  ConvDirectShape shape;
  shape.in_channels = narrow(p.c);
  shape.out_channels = narrow(p.k);
  shape.h = shape.out_h = 1;
  shape.w = shape.out_w = band;
  return shape;
}

class PreparedBlockSparse final : public PreparedSplit {
 public:
  PreparedBlockSparse(const Problem& problem, const LinearParams& p, const ConvSparseBlocksKernels& kernels,
                      const SparseBlocksParams& params, std::shared_ptr<const Packed> packed)
      : PreparedSplit(problem),
        kernels_(kernels),
        blocks_(*problem.layer, shape_of(p, params.band), params.band, kernels, std::move(packed)) {
    if (p.rows * p.k == 0) return;
    const auto rows = static_cast<double>(p.rows);
    const int threads =
        worth_threads(rows * blocks_.flop(), 4 * rows * static_cast<double>(p.c + p.k), problem.threads);
    split_ = WorkSplit(1, p.k / kernels.block, p.rows, threads, parse_split(params.split));
    scratch_ = static_cast<size_t>(round_up(p.c, kernels.block) * params.band) * sizeof(float);
  }

  bool works_on_residual() const override { return true; }

  void run(const RunArgs& args) const override {
    for_pieces(args, [&](int64_t, Range blocks, Range rows, std::byte* scratch) {
      auto* const pixels = reinterpret_cast<float*>(scratch);
      for_even_rows(args, residual_, rows, [&](const EvenRows& even) {
        ConvSparseBlocks call = blocks_.args();
        call.src = pixels;
        call.dst_pixel = static_cast<size_t>(even.dst_stride);
        call.dst_block = static_cast<size_t>(kernels_.block);
        for (int row = 0; row < even.count; row += call.band) {
          const int count = std::min(call.band, even.count - row);
          kernels_.block_rows(even.src + row * even.src_stride, even.src_stride, count, call.shape.in_channels,
                              call.band, pixels);
          call.dst = even.dst + row * even.dst_stride;
          if (residual_) call.epilogue.residual = even.residual + row * even.dst_stride;
          kernels_.run(call, static_cast<int>(blocks.begin), static_cast<int>(blocks.end), 0, count, nullptr);
        }
      });
    });
  }

 private:
  const ConvSparseBlocksKernels& kernels_;
  SparseBlocks blocks_;
};

class BlockSparseLinear final : public SparseBlocksRoutine {
 public:
  explicit BlockSparseLinear(Isa isa) : SparseBlocksRoutine("linear", isa, f32_nchw) {}

  Refusal check(const Problem& problem) const override {
    const LinearParams p = linear_params(problem);
    if (p.k % block() != 0) return "outputs are not a multiple of " + std::to_string(block());
    if (const Refusal sizes = check_kernel_sizes({p.rows, p.k, p.c, p.c * most_band}); !sizes.accepted()) return sizes;
    return check_weight(problem);
  }

  std::vector<Tuning> tunings(const Problem& problem) const override {
    const LinearParams p = linear_params(problem);
    const int split = likely_linear_split(p);
    // What all blocks of outputs read again is to stay in L1.
    const int near = band(p, 24 << 10);
    std::vector<Tuning> list{SparseBlocksParams{near, split}};
    if (problem.threads > 1 && p.rows > 1) list.push_back(SparseBlocksParams{near, 1 - split});
    return list;
  }

  std::unique_ptr<const Prepared> prepare(const Problem& problem, const Tuning& tuning,
                                          std::shared_ptr<const Packed> packed) const override {
    const auto own = SparseBlocksParams::of(tuning);
    parse_within("band", own.band, 1, most_band);
    return std::make_unique<PreparedBlockSparse>(problem, linear_params(problem), kernels(), own, std::move(packed));
  }

 private:
  static constexpr int most_band = 28 * 16;

  ConvDirectShape shape(const Problem& problem) const override { return shape_of(linear_params(problem), 1); }
  // Rows whose values are within so many bytes, tiles of which are whole.
  static int band(const LinearParams& p, int64_t bytes) {
    constexpr int64_t tile = 28;
    const int64_t fit = bytes / std::max<int64_t>(4 * p.c, 1) / tile * tile;
    return narrow(std::clamp<int64_t>(std::min(fit, p.rows), std::clamp<int64_t>(p.rows, 1, tile), most_band));
  }
};

}  // namespace

void linear_block_sparse(RoutineList& list) {
  for (Isa isa : all_isas()) list.add<BlockSparseLinear>(isa);
}

}  // namespace softneuro
