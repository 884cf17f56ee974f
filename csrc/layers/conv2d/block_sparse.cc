// Convolution on nchw{c}c blobs whose weights are zero a block of output channels at a time.
#include <algorithm>

#include "layers/contract/params.h"
#include "layers/conv2d/shapes.h"
#include "layers/shared/images.h"
#include "layers/weights/sparse_blocks.h"

namespace softneuro {
namespace {

class PreparedBlockSparse final : public PreparedSplit {
 public:
  PreparedBlockSparse(const Problem& problem, const ConvSparseBlocksKernels& kernels, const SparseBlocksParams& params,
                      std::shared_ptr<const Packed> packed)
      : PreparedSplit(problem),
        kernels_(kernels),
        blocks_(*problem.layer, direct_shape(conv2d_params(problem)), params.band, kernels, std::move(packed)) {
    const Conv2dParams p = conv2d_params(problem);
    if (p.empty()) return;
    const ConvDirectShape& shape = blocks_.args().shape;
    const SplitBy by = parse_split(params.split);
    const auto pixels = static_cast<double>(p.n * p.oh * p.ow);
    const double bytes = 4.0 * static_cast<double>(p.n * (p.k * p.oh * p.ow + p.c * p.h * p.w));
    split_ = WorkSplit(p.n, conv_sparse_blocks_count(shape, kernels.block), shape.pointwise() ? p.oh * p.ow : p.oh,
                       softneuro::worth_threads(pixels * blocks_.flop(), bytes, problem.threads), by, unit(shape, by));
    scratch_ = kernels.scratch_bytes(shape, params.band);
  }

  bool works_on_residual() const override { return true; }

  void run(const RunArgs& args) const override {
    for_pieces(args, [&](int64_t image, Range blocks, Range rows, std::byte* scratch) {
      const auto call = for_image(blocks_.args(), args, residual_, image);
      kernels_.run(call, static_cast<int>(blocks.begin), static_cast<int>(blocks.end), static_cast<int>(rows.begin),
                   static_cast<int>(rows.end), scratch);
    });
  }

 private:
  // What goes on in pieces: pixels in tiles, rows, and blocks where the rows that they read are not copied before.
  static int64_t unit(const ConvDirectShape& shape, SplitBy by) {
    if (by == SplitBy::panels) return shape.pointwise() ? 1 : 0;
    constexpr int64_t tile = 28;
    return shape.pointwise() ? tile : 1;
  }

  const ConvSparseBlocksKernels& kernels_;
  SparseBlocks blocks_;
};

class BlockSparseConv2d final : public SparseBlocksRoutine {
 public:
  explicit BlockSparseConv2d(Isa isa) : SparseBlocksRoutine("conv2d", isa, f32_blocked(isa_block(isa))) {}

  Refusal check(const Problem& problem) const override {
    const Conv2dParams p = conv2d_params(problem);
    if (p.groups > 1 && (p.group_c() % block() != 0 || p.group_k() % block() != 0)) {
      return "channels per group are not a multiple of " + std::to_string(block());
    }
    if (const Refusal sizes = check_int_sizes(p); !sizes.accepted()) return sizes;
    const int64_t row = copied_row(p), channels = round_up(p.group_c(), block());
    const int64_t rows = std::max(p.h, (p.oh - 1) * p.sh + (p.kh - 1) * p.dh + 1);
    if (Refusal sizes = check_kernel_sizes({channels * row * rows / 16}); !sizes.accepted()) return sizes;
    if (4 * channels * row * ((p.kh - 1) * p.dh + 1) > static_cast<int64_t>(most_scratch)) {
      return "a row's window is larger than scratch may be";
    }
    return check_weight(problem);
  }

  std::vector<Tuning> tunings(const Problem& problem) const override {
    const Conv2dParams p = conv2d_params(problem);
    const int split = likely_split(p.oh * p.ow);
    // What all blocks of outputs read again is to stay in L2, beside the rest or not; what is not copied, in L1.
    const int64_t part = p.pointwise() ? 32 << 10 : l2_bytes() / 8;
    const int near = band(p, part), far = band(p, l2_bytes() / 2);
    std::vector<Tuning> list{SparseBlocksParams{near, split}};
    if (near != far) list.push_back(SparseBlocksParams{far, split});
    if (problem.threads > 1) list.push_back(SparseBlocksParams{near, 1 - split});
    return list;
  }

  std::unique_ptr<const Prepared> prepare(const Problem& problem, const Tuning& tuning,
                                          std::shared_ptr<const Packed> packed) const override {
    const auto params = SparseBlocksParams::of(tuning);
    const Conv2dParams p = conv2d_params(problem);
    const int64_t outputs = p.pointwise() ? p.oh * p.ow : p.oh;
    parse_within("band", params.band, 1, std::max(narrow(outputs), 1));
    return std::make_unique<PreparedBlockSparse>(problem, kernels(), params, std::move(packed));
  }

 private:
  ConvDirectShape shape(const Problem& problem) const override { return direct_shape(conv2d_params(problem)); }
  static int64_t copied_row(const Conv2dParams& p) { return (p.ow + p.kw * p.dw / p.sw + 1) * p.sw; }

  // Output rows, or pixels, whose input is within so many bytes; of bands of equal height.
  static int band(const Conv2dParams& p, int64_t bytes) {
    const bool pointwise = direct_shape(p).pointwise();
    const int64_t outputs = std::max<int64_t>(pointwise ? p.oh * p.ow : p.oh, 1);
    const int64_t row = std::max<int64_t>(4 * p.group_c() * (pointwise ? 1 : copied_row(p)), 1);
    const int64_t fit = pointwise ? bytes / row / 28 * 28 : (bytes / row - (p.kh - 1) * p.dh - 1) / p.sh + 1;
    return narrow(ceil_div(outputs, ceil_div(outputs, std::min(std::max<int64_t>(fit, pointwise ? 28 : 1), outputs))));
  }
};

}  // namespace

void conv2d_block_sparse(RoutineList& list) {
  for (Isa isa : all_isas()) list.add<BlockSparseConv2d>(isa);
}

}  // namespace softneuro
