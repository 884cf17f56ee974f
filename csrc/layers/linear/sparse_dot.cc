// A few rows x weights of which many are zero: where weights come from memory, the bytes of those that are not zero are
// the time.
#include <algorithm>
#include <array>

#include "kernels/dot_sparse/dot_sparse.h"
#include "layers/contract/params.h"
#include "layers/linear/rows.h"
#include "layers/shared/kernel_sizes.h"
#include "layers/weights/sparse_weights.h"

namespace softneuro {
namespace {

SN_PARAMS(SparseDotParams, bits, fetch);

class PreparedSparseDot final : public PreparedSplit {
 public:
  PreparedSparseDot(const Problem& problem, const DotSparseKernels& kernels, const SparseDotParams& params,
                    std::shared_ptr<const Packed> packed)
      : PreparedSplit(problem, std::move(packed)), kernels_(kernels) {
    const LinearParams p = linear_params(problem);
    args_.weights = packed_->at<int32_t>("weights");
    args_.starts = packed_->at<int64_t>("starts");
    args_.k = narrow(p.c);
    args_.bits = params.bits;
    args_.fetch = params.fetch != 0;
    args_.epilogue = {.bias = packed_->find<float>("bias"), .activation = problem.layer->post.activation};
    rows_ = p.rows;
    if (p.rows * p.k == 0) return;
    const auto bytes = static_cast<double>(packed_->bytes());
    constexpr int64_t unit = 8;  // rows of weights read at a time
    const int threads = worth_threads(static_cast<double>(p.rows) * bytes / 2, bytes, problem.threads);
    split_ = WorkSplit(1, p.k, 1, threads, SplitBy::panels, unit);
    scratch_ = static_cast<size_t>(rows_) * width() * sizeof(float);
  }

  void run(const RunArgs& args) const override {
    SharedWork work(split_);
    args.parallel_for(split_.tasks, [&](int64_t task) {
      auto* const x = reinterpret_cast<float*>(args.workspace.task(task));
      std::array<int, DotSparse::most_vectors> nonfinite{};
      const BlobRows in(args.in[0]);
      for (int64_t row = 0; row < rows_; ++row) {
        nonfinite[row] = kernels_.copy(in.row(row), args_.k, x + static_cast<size_t>(row) * width());
      }
      work.for_task(task, [&](int64_t, Range outputs, Range) {
        int64_t row = 0;
        for_even_rows(args, residual_, {0, rows_}, [&](const EvenRows& even) {
          DotSparse call = args_;
          call.vectors = even.count;
          call.x = x + static_cast<size_t>(row) * width();
          std::copy_n(nonfinite.begin() + row, even.count, call.nonfinite);
          call.dst = even.dst;
          call.dst_stride = even.dst_stride;
          call.epilogue.residual = even.residual;
          kernels_.run(call, static_cast<int>(outputs.begin), static_cast<int>(outputs.end));
          row += even.count;
        });
      });
    });
  }

 private:
  size_t width() const { return dot_sparse_width(args_.k); }

  const DotSparseKernels& kernels_;
  DotSparse args_{};
  int64_t rows_ = 0;
};

class SparseDotLinear final : public Routine {
 public:
  explicit SparseDotLinear(Isa isa)
      : Routine({.layer_type = "linear",
                 .algorithm = "sparse_dot",
                 .isa = isa,
                 .in = f32_nchw,
                 .out = f32_nchw,
                 .exploits_sparsity = true}) {}

  Refusal check(const Problem& problem) const override {
    const LinearParams p = linear_params(problem);
    if (p.rows > DotSparse::most_vectors) return "more than " + std::to_string(DotSparse::most_vectors) + " rows";
    if (const Refusal refusal = check_kernel_sizes({p.rows, p.k, p.c}); !refusal.accepted()) return refusal;
    return check_zeros(*problem.layer->weight("weight"));
  }

  std::vector<std::string> param_names() const override { return SparseDotParams::names(); }
  // Columns take fewer bytes than a bitmap of weights that are nearly all zero, and fewer instructions before that.
  std::vector<Tuning> tunings(const Problem& problem) const override {
    constexpr double dense = 0.2, sparse = 0.08, sparser = 0.05;
    const double density = 1 - problem.layer->weight("weight")->traits().zeros;
    std::vector<Tuning> list;
    for (const int bits : {1, 8, 16}) {
      if (bits == 1 ? density < sparse : bits == 8 ? density > dense : density > sparser) continue;
      list.push_back(SparseDotParams{bits, 1}), list.push_back(SparseDotParams{bits, 0});
    }
    return list;
  }

  std::string pack_key(const Problem&, const Tuning& tuning) const override {
    return "bits " + std::to_string(SparseDotParams::of(tuning).bits);
  }
  Packing packing(const Problem& problem, const Tuning& tuning) const override {
    const LinearParams p = linear_params(problem);
    const auto weight = problem.layer->weight("weight")->values();
    Packing packing;
    packing.add("weights",
                static_cast<int64_t>(
                    dot_sparse_pack(narrow(p.k), narrow(p.c), checked(tuning).bits, weight.get(), nullptr, nullptr)),
                DType::int32);
    packing.add("starts", p.k + 1, DType::int64);
    add_bias(packing, *problem.layer, p.k);
    return packing;
  }
  void pack(const Problem& problem, const Tuning& tuning, Packed& to) const override {
    const LinearParams p = linear_params(problem);
    const int bits = checked(tuning).bits;
    const auto weight = problem.layer->weight("weight")->values();
    const size_t size = dot_sparse_pack(narrow(p.k), narrow(p.c), bits, weight.get(), nullptr, nullptr);
    expect_unchanged(static_cast<int64_t>(size) == to.packing().find("weights")->count);
    dot_sparse_pack(narrow(p.k), narrow(p.c), bits, weight.get(), to.at<int64_t>("starts"), to.at<int32_t>("weights"));
    pack_bias(*problem.layer, to);
  }

  std::unique_ptr<const Prepared> prepare(const Problem& problem, const Tuning& tuning,
                                          std::shared_ptr<const Packed> packed) const override {
    return std::make_unique<PreparedSparseDot>(problem, *dot_sparse_kernels(info().isa), checked(tuning),
                                               std::move(packed));
  }

 private:
  static SparseDotParams checked(const Tuning& tuning) {
    const auto own = SparseDotParams::of(tuning);
    if (!DotSparse::has_form(own.bits)) throw Error("bits must be 1, 8 or 16, not " + std::to_string(own.bits));
    parse_flag("fetch", own.fetch);
    return own;
  }
};

}  // namespace

void linear_sparse_dot(RoutineList& list) {
  for (Isa isa : all_isas()) list.add<SparseDotLinear>(isa);
}

}  // namespace softneuro
