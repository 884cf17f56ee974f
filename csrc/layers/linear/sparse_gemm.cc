// Many rows x weights of which most are zero: a panel of rows is turned, so that every weight that is not zero meets a
// feature of all of them at once, as it meets pixels in a sparse convolution.
#include <algorithm>
#include <cmath>

#include "kernels/finite/finite.h"
#include "kernels/store/store.h"
#include "kernels/transpose2d/transpose2d.h"
#include "layers/contract/params.h"
#include "layers/linear/rows.h"
#include "layers/shared/kernel_sizes.h"
#include "layers/weights/sparse_lists.h"

namespace softneuro {
namespace {

// Rows and features that are turned together, and how work is dealt to threads (SplitBy).
SN_PARAMS(SparseGemmParams, band, chunk, split);

// Vectors side by side in a tile of conv_sparse.
constexpr int tile_vectors(int lanes) { return lanes >= 16 ? 7 : 3; }

class PreparedSparseGemm final : public PreparedSplit {
 public:
  PreparedSparseGemm(const Problem& problem, const LinearParams& p, Isa isa, const SparseGemmParams& params,
                     const SparseLists& lists, std::shared_ptr<const Packed> packed)
      : PreparedSplit(problem),
        lists_(lists, std::move(packed)),
        run_(conv_sparse_kernels(isa)->run),
        turn_(transpose2d_kernel(isa)),
        finite_(finite_kernel(isa)),
        store_(store_kernels(isa)->rows),
        lanes_(conv_sparse_kernels(isa)->lanes),
        activation_(problem.layer->post.activation) {
    if (p.rows * p.k == 0) return;
    const int64_t band = std::min<int64_t>(params.band, p.rows);
    vectors_ = std::min<int64_t>(ceil_div(band, lanes_), tile_vectors(lanes_));
    width_ = round_up(band, vectors_ * lanes_);
    most_ = std::min<int64_t>(params.chunk, p.c);
    for (int64_t c = 0; c < most_; ++c) offsets_.push_back(narrow(c * width_));
    args_.offsets = offsets_.data();
    args_.bias = lists_.bias();
    args_.src_row = args_.dst_row = vectors_ * lanes_;
    args_.dst_channel = width_;
    args_.vectors = narrow(vectors_);
    args_.last = lanes_;
    if (!residual_) args_.activation = activation_;
    const double flop = 2.0 * static_cast<double>(p.rows) * static_cast<double>(lists_.bytes() / 6);
    split_ = WorkSplit(1, lists_.panels(), p.rows,
                       worth_threads(flop, 4.0 * static_cast<double>(p.rows * (p.c + p.k)), problem.threads),
                       parse_split(params.split));
    // Panels whose sums stay in L2.
    const int64_t panel_bytes = ceil_div(p.k, lists_.panels()) * width_ * 4;
    together_ = std::clamp<int64_t>(l2_bytes() / 2 / panel_bytes, 1, lists_.panels());
    turned_ = round_to_line(static_cast<size_t>(most_ * width_) * sizeof(float));
    scratch_ = turned_ + static_cast<size_t>(together_ * panel_bytes);
  }

  void run(const RunArgs& args) const override {
    for_pieces(args, [&](int64_t, Range panels, Range rows, std::byte* scratch) {
      for_even_rows(args, residual_, rows, [&](const EvenRows& even) {
        for (int row = 0; row < even.count; row += narrow(width_)) {
          const EvenRows part{even.src + row * even.src_stride,
                              even.dst + row * even.dst_stride,
                              residual_ ? even.residual + row * even.dst_stride : nullptr,
                              even.src_stride,
                              even.dst_stride,
                              std::min(even.count - row, narrow(width_))};
          for (int64_t panel = panels.begin; panel < panels.end; panel += together_) {
            run_part(part, {panel, std::min(panel + together_, panels.end)}, scratch);
          }
        }
      });
    });
  }

 private:
  void run_part(const EvenRows& part, Range panels, std::byte* scratch) const {
    auto* const turned = reinterpret_cast<float*>(scratch);
    auto* const sums = reinterpret_cast<float*>(scratch + turned_);
    const int64_t first = first_output(panels.begin),
                  outputs = first_output(panels.end - 1) + lists_.rows(panels.end - 1, 0).count - first;
    ConvSparseArgs call = args_;
    call.rows = narrow(ceil_div<int64_t>(part.count, args_.src_row));
    call.src = turned;
    call.dst = sums - first * width_;
    call.lists = narrow(panels.end - panels.begin);
    const int64_t used = call.rows * args_.src_row;
    bool finite = true;
    for (int64_t chunk = 0; chunk < lists_.chunks(); ++chunk) {
      const int64_t features = lists_.channels(chunk);
      turn_({part.src + lists_.first(chunk), part.src_stride, turned, width_, part.count, features, used});
      for (int64_t c = 0; c < features; ++c) {
        finite = finite_(turned + c * width_, static_cast<size_t>(part.count)) && finite;
      }
      call.weights = &lists_.rows(panels.begin, chunk);
      call.first = chunk == 0;
      call.final = chunk + 1 == lists_.chunks();
      run_(call);
    }
    float* const dst = part.dst + first;
    turn_({sums, width_, dst, part.dst_stride, outputs, part.count, outputs});
    if (residual_) {
      StoreRows rows;
      rows.epilogue = {.residual = part.residual + first, .activation = activation_};
      rows.sums = rows.dst = dst;
      rows.sums_stride = rows.stride = part.dst_stride;
      rows.rows = part.count;
      rows.columns = narrow(outputs);
      store_(rows);
    }
    if (!finite) mend(part, panels);
  }

  // Lists have a panel's outputs in any order.
  int64_t first_output(int64_t panel) const {
    const SparseRows& all = lists_.rows(panel, 0);
    return *std::min_element(all.channels, all.channels + all.count);
  }

  // What a dense product gives: NaN where a value that is not finite meets a zero weight.
  void mend(const EvenRows& part, Range panels) const {
    for (int row = 0; row < part.count; ++row) {
      for (int64_t chunk = 0; chunk < lists_.chunks(); ++chunk) {
        const float* const x = part.src + row * part.src_stride + lists_.first(chunk);
        for (int64_t c = 0; c < lists_.channels(chunk); ++c) {
          if (std::isfinite(x[c])) continue;
          for (int64_t panel = panels.begin; panel < panels.end; ++panel) {
            spread_nonfinite(lists_.rows(panel, chunk), static_cast<uint16_t>(c), part.dst + row * part.dst_stride, 1);
          }
        }
      }
    }
  }

  PackedLists lists_;
  decltype(ConvSparseKernels::run) run_;
  Transpose2dKernel turn_;
  FiniteKernel finite_;
  decltype(StoreKernels::rows) store_;
  int lanes_;
  Activation activation_;
  std::vector<int32_t> offsets_;
  ConvSparseArgs args_;
  int64_t vectors_ = 1, width_ = 0;  // side by side; rows of a band, in whole vectors
  int64_t most_ = 0, together_ = 1;  // features of a chunk, panels whose sums are kept
  size_t turned_ = 0;                // bytes of a task
};

class SparseGemmLinear final : public Routine {
 public:
  explicit SparseGemmLinear(Isa isa)
      : Routine({.layer_type = "linear",
                 .algorithm = "sparse_gemm",
                 .isa = isa,
                 .in = f32_nchw,
                 .out = f32_nchw,
                 .exploits_sparsity = true}) {}

  Refusal check(const Problem& problem) const override {
    const LinearParams p = linear_params(problem);
    if (p.rows < 2) return "a single row";
    if (const Refusal sizes = check_kernel_sizes({p.rows, p.k, p.c}); !sizes.accepted()) return sizes;
    return check_sparse(*problem.layer->weight("weight"), 1);
  }

  std::vector<std::string> param_names() const override { return SparseGemmParams::names(); }
  // Chunks of features that stay in L1: the sparser, the more of them pay for what sums cost between chunks.
  std::vector<Tuning> tunings(const Problem& problem) const override {
    const LinearParams p = linear_params(problem);
    const int lanes = conv_sparse_kernels(info().isa)->lanes, wide = tile_vectors(lanes), half = (wide + 1) / 2;
    const int split = likely_linear_split(p), rows = narrow(round_up(std::max<int64_t>(p.rows, 1), lanes));
    const auto params_of = [&](int vectors, int bytes, int by) {
      const int band = std::min(vectors * lanes, rows);
      return SparseGemmParams{band, bytes / 4 / band, by};
    };
    std::vector<Tuning> list{params_of(half, 32 << 10, split), params_of(half, 128 << 10, split)};
    if (rows > half * lanes) list.push_back(params_of(wide, 32 << 10, split));
    if (problem.threads > 1) list.push_back(params_of(half, 32 << 10, 1 - split));
    return list;
  }

  std::string pack_key(const Problem&, const Tuning& tuning) const override {
    return std::to_string(SparseGemmParams::of(tuning).chunk);
  }
  Packing packing(const Problem& problem, const Tuning& tuning) const override {
    return lists(problem, tuning).packing(*problem.layer);
  }
  void pack(const Problem& problem, const Tuning& tuning, Packed& to) const override {
    lists(problem, tuning).pack(*problem.layer, to);
  }
  std::unique_ptr<const Prepared> prepare(const Problem& problem, const Tuning& tuning,
                                          std::shared_ptr<const Packed> packed) const override {
    const auto own = SparseGemmParams::of(tuning);
    parse_within("band", own.band, 1, most_band);
    parse_within("chunk", own.chunk, 1, narrow(most_chunk(1)));
    return std::make_unique<PreparedSparseGemm>(problem, linear_params(problem), info().isa, own,
                                                lists(problem, tuning), std::move(packed));
  }

 private:
  static constexpr int most_band = 1 << 10;

  static SparseLists lists(const Problem& problem, const Tuning& tuning) {
    const LinearParams p = linear_params(problem);
    return SparseLists(
        {.k = p.k, .c = p.c, .chunk = std::clamp(SparseGemmParams::of(tuning).chunk, 1, narrow(most_chunk(1)))});
  }
};

}  // namespace

void linear_sparse_gemm(RoutineList& list) {
  for (Isa isa : all_isas()) list.add<SparseGemmLinear>(isa);
}

}  // namespace softneuro
