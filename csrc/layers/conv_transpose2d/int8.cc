// Transposed convolution of quantized blobs whose channels are side by side. Outputs whose places agree modulo the
// stride, a phase, have the same taps at the same distances: a row of a phase is a product of copied windows.
#include "layers/quantized/int8.h"

#include <algorithm>
#include <cstring>

#include "layers/conv_transpose2d/conv_transpose2d.h"
#include "layers/shared/kernel_sizes.h"
#include "layers/shared/split.h"

namespace softneuro {
namespace {

// A place in the kernel, and how far behind an output's index in its phase is the input that it multiplies.
struct Tap {
  int64_t at, distance;
};
std::vector<Tap> taps_of(int64_t phase, int64_t kernel, int64_t stride, int64_t dilation, int64_t padding) {
  std::vector<Tap> taps;
  for (int64_t at = 0; at < kernel; ++at) {
    const int64_t place = phase + padding - at * dilation;
    if (place % stride == 0) taps.push_back({at, place / stride});
  }
  return taps;
}

struct Phase {
  std::vector<Tap> y, x;
  Int8Shape shape;
  size_t weights = 0;  // where they are packed
};
// Those of rows, one after the other, by their place in a row.
std::vector<Phase> phases_of(const ConvTranspose2dParams& p) {
  std::vector<Phase> phases;
  size_t weights = 0;
  for (int64_t py = 0; py < p.sh; ++py) {
    for (int64_t px = 0; px < p.sw; ++px) {
      Phase phase{taps_of(py, p.kh, p.sh, p.dh, p.ph), taps_of(px, p.kw, p.sw, p.dw, p.pw), {}, weights};
      const auto taps = static_cast<int64_t>(phase.y.size() * phase.x.size());
      phase.shape = {p.groups, p.group_k(), taps * p.group_c()};
      weights += static_cast<size_t>(p.groups) *
                 gemm_int8_packed_bytes(static_cast<int>(p.group_k()), static_cast<int>(phase.shape.k));
      phases.push_back(std::move(phase));
    }
  }
  return phases;
}

Int8Shape whole_shape(const ConvTranspose2dParams& p) { return {p.groups, p.group_k(), p.group_c() * p.kh * p.kw}; }

class PreparedInt8ConvTranspose2d final : public PreparedSplit {
 public:
  PreparedInt8ConvTranspose2d(const Problem& problem, const GemmInt8Kernels& kernels, DType residual,
                              std::shared_ptr<const Packed> packed)
      : PreparedSplit(problem, std::move(packed)),
        kernels_(kernels),
        p_(conv_transpose2d_params(problem)),
        phases_(phases_of(p_)),
        zero_(static_cast<uint8_t>(problem.in[0].quantization->zero_points[0])) {
    if (problem.out().shape.elements() == 0) return;
    const int64_t most = (p_.ow + p_.sw - 1) / p_.sw;
    size_t kernel = 0;
    for (size_t i = 0; i < phases_.size(); ++i) {
      const Int8Shape& shape = phases_[i].shape;
      GemmInt8& gemm = gemms_.emplace_back(int8_gemm(problem, shape, *packed_, residual));
      gemm.m = narrow(most);
      gemm.a_stride = gemm.k;
      gemm.b += phases_[i].weights;
      gemm.start += static_cast<int64_t>(i) * shape.groups * shape.padded();
      gemm.dst_stride = p_.sw * p_.k;
      copied_ = std::max(copied_, round_to_line(static_cast<size_t>(most * gemm.k)));
      kernel = std::max(kernel, round_to_line(kernels_.scratch_bytes(gemm)));
    }
    scratch_ = copied_ + kernel;
    const double pixels = static_cast<double>(p_.n * p_.h * p_.w);
    const double products = pixels * static_cast<double>(p_.c * p_.group_k() * p_.kh * p_.kw);
    const double bytes =
        pixels * static_cast<double>(p_.c) + static_cast<double>(problem.out().shape.elements() + p_.c * p_.k);
    split_ =
        WorkSplit(p_.n * p_.groups, 1, p_.oh, worth_threads(0.5 * products, bytes, problem.threads), SplitBy::rows, 1);
  }

  bool works_on_residual() const override { return true; }

  void run(const RunArgs& args) const override {
    for_pieces(args, [&](int64_t index, Range, Range rows, std::byte* scratch) {
      for (int64_t oy = rows.begin; oy < rows.end; ++oy) {
        for (int64_t px = 0; px < std::min(p_.sw, p_.ow); ++px) {
          run_row(args, index / p_.groups, index % p_.groups, oy, px, scratch);
        }
      }
    });
  }

 private:
  // Those outputs of a row that are of a phase.
  void run_row(const RunArgs& args, int64_t image, int64_t group, int64_t oy, int64_t px, std::byte* scratch) const {
    const TensorView &in = args.in[0], &out = args.out;
    const auto index = static_cast<size_t>(oy % p_.sh * p_.sw + px);
    const Phase& phase = phases_[index];
    GemmInt8 call = int8_group(gemms_[index], phase.shape, group);
    call.m = static_cast<int>((p_.ow - px + p_.sw - 1) / p_.sw);
    auto* windows = reinterpret_cast<uint8_t*>(scratch);
    copy_windows(static_cast<const uint8_t*>(in.at(image * in.strides[0] + group * p_.group_c())), phase, oy / p_.sh,
                 call, windows);
    call.a = windows;
    const int64_t at = (oy * p_.ow + px) * p_.k + group * p_.group_k();
    call.dst = out.at(image * out.strides[0] + at);
    if (residual_) {
      const TensorView& residual = args.in[1];
      call.epilogue.residual.data = residual.at(image * residual.strides[0] + at);
    }
    kernels_.run(call, 0, phase.shape.padded() / GemmInt8::block, 0, call.m, scratch + copied_);
  }

  // Rows of call.k bytes, [y taps][x taps][c], with zeros (of no account) behind.
  void copy_windows(const uint8_t* src, const Phase& phase, int64_t row, const GemmInt8& call, uint8_t* to) const {
    const int64_t c = p_.group_c(), rest = call.k - phase.shape.k;
    for (int64_t column = 0; column < call.m; ++column) {
      for (const Tap& ty : phase.y) {
        const int64_t y = row + ty.distance;
        for (const Tap& tx : phase.x) {
          const int64_t x = column + tx.distance;
          if (y >= 0 && y < p_.h && x >= 0 && x < p_.w) {
            std::memcpy(to, src + (y * p_.w + x) * p_.c, static_cast<size_t>(c));
          } else {
            std::memset(to, zero_, static_cast<size_t>(c));
          }
          to += c;
        }
      }
      for (int64_t i = 0; i < rest; ++i) *to++ = 0;
    }
  }

  const GemmInt8Kernels& kernels_;
  ConvTranspose2dParams p_;
  std::vector<Phase> phases_;
  std::vector<GemmInt8> gemms_;  // by phase
  uint8_t zero_;
  size_t copied_ = 0;  // bytes of a task
};

class Int8ConvTranspose2d final : public Routine {
 public:
  Int8ConvTranspose2d(Isa isa, DType out) : Routine(int8_info("conv_transpose2d", isa, Layout::nhwc(), out)) {}

  Refusal check(const Problem& problem) const override {
    const ConvTranspose2dParams p = conv_transpose2d_params(problem);
    if (const Refusal refusal = check_int8(problem, whole_shape(p), 1); !refusal.accepted()) return refusal;
    return check_kernel_sizes({p.oh * p.ow * p.k, p.h * p.w * p.c, p.ow * whole_shape(p).k, p.sh * p.sw});
  }
  // A channel for itself wastes a panel on it.
  bool promising(const Problem& problem) const override {
    const ConvTranspose2dParams p = conv_transpose2d_params(problem);
    return p.groups == 1 || p.group_k() >= 4;
  }

  std::string pack_key(const Problem& problem, const Tuning&) const override { return int8_pack_key(problem); }
  Packing packing(const Problem& problem, const Tuning&) const override {
    const ConvTranspose2dParams p = conv_transpose2d_params(problem);
    const Int8Shape shape = whole_shape(p);
    int64_t bytes = 0;
    for (const Phase& phase : phases_of(p)) {
      bytes += p.groups *
               static_cast<int64_t>(gemm_int8_packed_bytes(static_cast<int>(shape.n), static_cast<int>(phase.shape.k)));
    }
    return int8_packing(shape, bytes, shape.groups * shape.padded(), p.sh * p.sw);
  }
  void pack(const Problem& problem, const Tuning&, Packed& to) const override {
    const ConvTranspose2dParams p = conv_transpose2d_params(problem);
    const auto weights_held = int8_weights(problem);
    const int8_t* from = weights_held.get();
    const std::vector<Phase> phases = phases_of(p);
    auto *weights = to.at<int8_t>("weights"), *end = weights;
    for (size_t i = 0; i < phases.size(); ++i) {
      const Int8Shape& shape = phases[i].shape;
      std::vector<int8_t> rows;
      for (int64_t output = 0; output < shape.outputs(); ++output) {
        const int64_t group = output / shape.n, k = output % shape.n;
        for (const Tap& y : phases[i].y) {
          for (const Tap& x : phases[i].x) {
            for (int64_t c = group * p.group_c(); c < (group + 1) * p.group_c(); ++c) {
              rows.push_back(from[((c * shape.n + k) * p.kh + y.at) * p.kw + x.at]);
            }
          }
        }
      }
      end = weights + phases[i].weights;
      pack_int8_part(problem, shape, rows.data(), {end, static_cast<int64_t>(i) * shape.groups * shape.padded()}, to);
      end += static_cast<size_t>(shape.groups) *
             gemm_int8_packed_bytes(static_cast<int>(shape.n), static_cast<int>(shape.k));
    }
    *to.at<int32_t>("narrow") = gemm_int8_is_narrow(weights, static_cast<size_t>(end - weights)) ? 1 : 0;
  }

  std::unique_ptr<const Prepared> prepare(const Problem& problem, const Tuning&,
                                          std::shared_ptr<const Packed> packed) const override {
    return std::make_unique<PreparedInt8ConvTranspose2d>(problem, *gemm_int8_kernels(info().isa), info().out.dtype,
                                                         std::move(packed));
  }
};

}  // namespace

void conv_transpose2d_int8(RoutineList& list) {
  for (const Isa isa : int8_isas()) {
    for (const DType out : {DType::qint8, DType::float32}) list.add<Int8ConvTranspose2d>(isa, out);
  }
}

}  // namespace softneuro
