// Rows of quantized bytes x quantized weights.
#include "layers/quantized/int8.h"

#include <algorithm>
#include <cstring>

#include "kernels/integers.h"
#include "layers/contract/params.h"
#include "layers/linear/linear.h"
#include "layers/shared/kernel_sizes.h"
#include "layers/shared/split.h"
#include "layers/weights/sparse_weights.h"

namespace softneuro {
namespace {

SN_PARAMS(LinearInt8Params, split);

Int8Shape int8_shape(const LinearParams& p) { return {1, p.k, p.c}; }

class PreparedInt8Linear final : public PreparedSplit {
 public:
  PreparedInt8Linear(const Problem& problem, const GemmInt8Kernels& kernels, const LinearInt8Params& params,
                     DType residual, std::shared_ptr<const Packed> packed)
      : PreparedSplit(problem, std::move(packed)),
        kernels_(kernels),
        p_(linear_params(problem)),
        gemm_(int8_gemm(problem, int8_shape(p_), *packed_, residual)),
        row_starts_(problem, int8_shape(p_)) {
    if (p_.rows * p_.k == 0) return;
    const double products = static_cast<double>(p_.rows * p_.k) * static_cast<double>(p_.c);
    const double bytes = static_cast<double>(p_.rows * (p_.c + p_.k)) + static_cast<double>(p_.k * p_.c);
    const SplitBy by = parse_split(params.split);
    split_ = WorkSplit(1, (p_.k + GemmInt8::block - 1) / GemmInt8::block, p_.rows,
                       worth_threads(0.5 * products, bytes, problem.threads), by);
    gemm_.m = narrow(p_.rows);
    gemm_.dst_stride = p_.k;
    gemm_.a_stride = gemm_.k;
    copied_ = p_.c == gemm_.k ? 0 : round_to_line(static_cast<size_t>(p_.rows) * static_cast<size_t>(gemm_.k));
    kernel_ = copied_ + row_starts_.bytes(p_.rows);
    scratch_ = kernel_ + round_to_line(kernels_.scratch_bytes(gemm_));
  }

  void run(const RunArgs& args) const override {
    for_pieces(args, [&](int64_t, Range panels, Range rows, std::byte* scratch) {
      for (int64_t row = rows.begin; row < rows.end;) row = run_rows(args, panels, row, rows.end, scratch);
    });
  }

 private:
  // From a row on, as many as lie evenly in all blobs; where the next ones begin.
  int64_t run_rows(const RunArgs& args, Range panels, int64_t begin, int64_t end, std::byte* scratch) const {
    const int blobs = residual_ ? 2 : 1;
    bool even = args.out.dense();
    for (int i = 0; i < blobs; ++i) even = even && args.in[i].dense();
    const int rank = args.out.shape.rank();
    const int64_t per_image = rank < 2 ? 1 : args.out.shape.product(1, rank - 1);
    if (!even) end = std::min(end, (begin / per_image + 1) * per_image);
    const auto row_of = [&](const TensorView& view) {
      const int64_t size = view.shape[rank - 1];
      const int64_t image = rank < 2 ? 0 : begin / per_image * view.strides[0];
      return view.at(image + begin % per_image * size);
    };
    GemmInt8 call = gemm_;
    call.m = static_cast<int>(end - begin);
    call.a = static_cast<const uint8_t*>(row_of(args.in[0]));
    if (copied_ > 0) {
      auto* to = reinterpret_cast<uint8_t*>(scratch);
      for (int64_t row = 0; row < call.m; ++row) {
        std::memcpy(to + row * gemm_.k, call.a + row * p_.c, static_cast<size_t>(p_.c));
        std::memset(to + row * gemm_.k + p_.c, 0, static_cast<size_t>(gemm_.k - p_.c));
      }
      call.a = to;
    }
    row_starts_.set(call, scratch + copied_);
    call.dst = row_of(args.out);
    if (residual_) call.epilogue.residual.data = row_of(args.in[1]);
    kernels_.run(call, static_cast<int>(panels.begin), static_cast<int>(panels.end), 0, call.m, scratch + kernel_);
    return end;
  }

  const GemmInt8Kernels& kernels_;
  LinearParams p_;
  GemmInt8 gemm_;
  Int8RowStarts row_starts_;
  size_t copied_ = 0, kernel_ = 0;  // bytes of a task
};

class Int8Linear final : public Routine {
 public:
  Int8Linear(Isa isa, DType out, bool sparse) : Routine(int8_info("linear", isa, Layout::nchw(), out, sparse)) {}

  Refusal check(const Problem& problem) const override {
    const LinearParams p = linear_params(problem);
    if (const Refusal refusal = check_int8(problem, int8_shape(p), 0, !sparse()); !refusal.accepted()) return refusal;
    if (const Refusal refusal = check_kernel_sizes({p.rows, p.k, p.c}); !refusal.accepted() || !sparse())
      return refusal;
    return check_zero_blocks(*problem.layer->weight("weight"));
  }

  std::vector<std::string> param_names() const override { return LinearInt8Params::names(); }
  std::vector<Tuning> tunings(const Problem& problem) const override {
    const LinearParams p = linear_params(problem);
    const int split = static_cast<int>(p.rows < p.k ? SplitBy::panels : SplitBy::rows);
    std::vector<Tuning> list{LinearInt8Params{split}};
    if (problem.threads > 1 && p.rows > 1) list.push_back(LinearInt8Params{1 - split});
    return list;
  }

  std::string pack_key(const Problem& problem, const Tuning&) const override { return int8_pack_key(problem); }
  Packing packing(const Problem& problem, const Tuning&) const override {
    Packing packing = int8_packing(int8_shape(linear_params(problem)));
    if (sparse()) lists(problem).add(packing);
    return packing;
  }
  void pack(const Problem& problem, const Tuning&, Packed& to) const override {
    pack_int8(problem, int8_shape(linear_params(problem)), int8_weights(problem).get(), to);
    if (sparse()) lists(problem).pack(to);
  }

  std::unique_ptr<const Prepared> prepare(const Problem& problem, const Tuning& tuning,
                                          std::shared_ptr<const Packed> packed) const override {
    return std::make_unique<PreparedInt8Linear>(problem, *gemm_int8_kernels(info().isa), LinearInt8Params::of(tuning),
                                                info().out.dtype, std::move(packed));
  }

 private:
  bool sparse() const { return info().exploits_sparsity; }
  static Int8Lists lists(const Problem& problem) {
    return {int8_shape(linear_params(problem)), int8_weights(problem).get()};
  }
};

}  // namespace

void linear_int8(RoutineList& list) {
  for (const Isa isa : int8_isas()) {
    for (const DType out : {DType::qint8, DType::float32}) {
      list.add<Int8Linear>(isa, out, false);
      if (isa != Isa::amx) list.add<Int8Linear>(isa, out, true);
    }
  }
}

}  // namespace softneuro
