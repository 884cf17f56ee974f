// Convolution of quantized blobs whose channels are side by side. Windows are copied to rows, a strip of pixels at a
// time, which are multiplied with the weights; 1x1 kernels need no copy. What lies outside the image is the zero point.
#include "layers/contract/params.h"
#include "layers/conv2d/byte_windows.h"
#include "layers/conv2d/shapes.h"
#include "layers/weights/sparse_weights.h"

namespace softneuro {
namespace {

// rows: pixels of a strip.
SN_PARAMS(Int8Params, rows, split);

class PreparedInt8Conv2d final : public PreparedSplit {
 public:
  PreparedInt8Conv2d(const Problem& problem, const GemmInt8Kernels& kernels, const Int8Params& params, DType residual,
                     std::shared_ptr<const Packed> packed)
      : PreparedSplit(problem, std::move(packed)),
        kernels_(kernels),
        p_(conv2d_params(problem)),
        shape_(int8_shape(p_)),
        gemm_(int8_gemm(problem, shape_, *packed_, residual)),
        row_starts_(problem, shape_),
        zero_(static_cast<uint8_t>(problem.in[0].quantization->zero_points[0])) {
    direct_ = p_.pointwise() && p_.sh == 1 && p_.sw == 1 && p_.group_c() % GemmInt8::group == 0;
    if (p_.empty()) return;
    rows_ = std::min<int64_t>(params.rows, p_.oh * p_.ow);
    const SplitBy by = parse_split(params.split);
    const int64_t panels = shape_.padded() / GemmInt8::block;
    split_ = WorkSplit(p_.n * p_.groups, panels, p_.oh * p_.ow, worth_int8_threads(problem), by,
                       by == SplitBy::panels ? 1 : 0);
    gemm_.m = narrow(direct_ ? p_.oh * p_.ow : rows_);
    gemm_.a_stride = direct_ ? p_.c : gemm_.k;
    gemm_.dst_stride = p_.k;
    windows_ = ByteWindows(p_, gemm_.k);
    columns_ = direct_ ? 0 : windows_.bytes(rows_);
    kernel_ = columns_ + row_starts_.bytes(gemm_.m);
    scratch_ = kernel_ + round_to_line(kernels_.scratch_bytes(gemm_));
  }

  bool works_on_residual() const override { return true; }

  void run(const RunArgs& args) const override {
    for_pieces(args, [&](int64_t index, Range panels, Range pixels, std::byte* scratch) {
      const int64_t step = direct_ ? pixels.end - pixels.begin : rows_;
      for (int64_t begin = pixels.begin; begin < pixels.end; begin += step) {
        run_strip(args, index / p_.groups, index % p_.groups, panels, {begin, std::min(begin + step, pixels.end)},
                  scratch);
      }
    });
  }

 private:
  // Products are a quarter of a float's work.
  int worth_int8_threads(const Problem& problem) const {
    const double outputs = static_cast<double>(p_.n * p_.k * p_.oh * p_.ow);
    const double bytes = outputs + static_cast<double>(p_.n * p_.c * p_.h * p_.w + shape_.outputs() * shape_.k);
    return worth_threads(0.5 * outputs * static_cast<double>(shape_.k), bytes, problem.threads);
  }

  void run_strip(const RunArgs& args, int64_t image, int64_t group, Range panels, Range pixels,
                 std::byte* scratch) const {
    const TensorView &in = args.in[0], &out = args.out;
    const auto* src = static_cast<const uint8_t*>(in.at(image * in.strides[0] + group * p_.group_c()));
    GemmInt8 call = int8_group(gemm_, shape_, group);
    call.m = static_cast<int>(pixels.end - pixels.begin);
    if (direct_) {
      call.a = src + pixels.begin * p_.c;
    } else {
      auto* columns = reinterpret_cast<uint8_t*>(scratch);
      windows_.copy(src, static_cast<const uint8_t*>(in.at(image * in.strides[0])) + in.image_elements(), zero_, pixels,
                    columns);
      call.a = columns;
    }
    row_starts_.set(call, scratch + columns_);
    const int64_t at = pixels.begin * p_.k + group * p_.group_k();
    call.dst = out.at(image * out.strides[0] + at);
    if (residual_) {
      const TensorView& residual = args.in[1];
      call.epilogue.residual.data = residual.at(image * residual.strides[0] + at);
    }
    kernels_.run(call, static_cast<int>(panels.begin), static_cast<int>(panels.end), 0, call.m, scratch + kernel_);
  }

  const GemmInt8Kernels& kernels_;
  Conv2dParams p_;
  ByteWindows windows_;
  Int8Shape shape_;
  GemmInt8 gemm_;
  bool direct_ = false;
  Int8RowStarts row_starts_;
  uint8_t zero_;
  int64_t rows_ = 0;
  size_t columns_ = 0, kernel_ = 0;  // bytes of a task
};

class Int8Conv2d final : public Routine {
 public:
  Int8Conv2d(Isa isa, DType out, bool sparse)
      : Routine([&] {
          RoutineInfo info = int8_info("conv2d", isa, Layout::nhwc(), out, sparse);
          info.quantizes_first = out == DType::qint8;
          return info;
        }()) {}

  Refusal check(const Problem& problem) const override {
    const Conv2dParams p = conv2d_params(problem);
    if (const Refusal refusal = check_int8(problem, int8_shape(p), 0, !sparse()); !refusal.accepted()) return refusal;
    if (const Refusal refusal = check_int_sizes(p); !refusal.accepted() || !sparse()) return refusal;
    return check_zero_blocks(*problem.layer->weight("weight"));
  }
  // A channel for itself is what depthwise kernels are for.
  bool promising(const Problem& problem) const override {
    const Conv2dParams p = conv2d_params(problem);
    return p.groups == 1 || p.group_k() >= 4;
  }

  std::vector<std::string> param_names() const override { return Int8Params::names(); }
  std::vector<Tuning> tunings(const Problem& problem) const override {
    const Conv2dParams p = conv2d_params(problem);
    const int split = likely_split(p.oh * p.ow);
    // Rows of a strip that L1 and L2 hold.
    const auto strip = [&](int64_t bytes) {
      return static_cast<int>(std::clamp<int64_t>(bytes / std::max<int64_t>(int8_shape(p).k, 1) / 16 * 16, 16, 512));
    };
    const int large = strip(l2_bytes() / 4), small = strip(24 << 10);
    std::vector<Tuning> list{Int8Params{large, split}};
    if (!p.pointwise() && small != large) list.push_back(Int8Params{small, split});
    if (problem.threads > 1) list.push_back(Int8Params{large, 1 - split});
    return list;
  }

  std::string pack_key(const Problem& problem, const Tuning&) const override { return int8_pack_key(problem); }
  Packing packing(const Problem& problem, const Tuning&) const override {
    Packing packing = int8_packing(int8_shape(conv2d_params(problem)));
    if (sparse()) lists(problem).add(packing);
    return packing;
  }
  void pack(const Problem& problem, const Tuning&, Packed& to) const override {
    const Conv2dParams p = conv2d_params(problem);
    pack_int8(problem, int8_shape(p), filter_rows(problem, p).data(), to);
    if (sparse()) lists(problem).pack(to);
  }

  std::unique_ptr<const Prepared> prepare(const Problem& problem, const Tuning& tuning,
                                          std::shared_ptr<const Packed> packed) const override {
    Int8Params params = Int8Params::of(tuning);
    parse_positive("rows", params.rows);
    return std::make_unique<PreparedInt8Conv2d>(problem, *gemm_int8_kernels(info().isa), params, info().out.dtype,
                                                std::move(packed));
  }

 private:
  bool sparse() const { return info().exploits_sparsity; }
  static Int8Lists lists(const Problem& problem) {
    const Conv2dParams p = conv2d_params(problem);
    return {int8_shape(p), filter_rows(problem, p).data()};
  }
};

}  // namespace

void conv2d_int8(RoutineList& list) {
  for (const Isa isa : int8_isas()) {
    for (const DType out : {DType::qint8, DType::float32}) {
      list.add<Int8Conv2d>(isa, out, false);
      if (isa != Isa::amx) list.add<Int8Conv2d>(isa, out, true);
    }
  }
}

}  // namespace softneuro
