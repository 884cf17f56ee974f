#include "layers/products/strassen.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/lines.h"
#include "base/threads.h"
#include "kernels/activate/activate.h"
#include "layers/products/gemm_tasks.h"

namespace softneuro {
namespace {

constexpr int products = 7;            // of a level
constexpr int64_t line = line_floats;  // rows of scratch are this much apart from a power of two

int64_t pieces(int depth) { return int64_t{1} << depth; }
int64_t whole(int64_t size, int depth) { return size / pieces(depth) * pieces(depth); }
int64_t leaves(int depth) { return depth == 0 ? 1 : products * leaves(depth - 1); }
size_t floats(int64_t count) { return whole_lines(static_cast<size_t>(count)); }

size_t packed_size(const GemmKernels& kernels, int64_t n, int64_t k) {
  return gemm_packed_size(static_cast<int>(n), static_cast<int>(k), kernels.lanes);
}

// What does not divide: columns of b past the last whole quarter, and products past it for the other columns.
struct Rest {
  int64_t n0, k0;  // of the part that divides
  int64_t n, k;
  explicit Rest(const StrassenShape& s) : n0(whole(s.n, s.depth)), k0(whole(s.k, s.depth)), n(s.n - n0), k(s.k - k0) {}
};

// The packed parts, one after the other.
struct Parts {
  size_t leaf, core, more_k, more_n;
  Parts(const GemmKernels& kernels, const StrassenShape& s) {
    const Rest rest(s);
    leaf = packed_size(kernels, rest.n0 / pieces(s.depth), rest.k0 / pieces(s.depth));
    core = leaf * static_cast<size_t>(leaves(s.depth));
    more_k = rest.k > 0 ? packed_size(kernels, rest.n0, rest.k) : 0;
    more_n = rest.n > 0 ? packed_size(kernels, rest.n, s.k) : 0;
  }
};

// A combination of b's quarters: factors of b11, b12, b21, b22, in the order in which multiply() uses them.
constexpr int combinations[products][4] = {
    {1, 0, 0, 0},    // b11
    {0, 0, 1, 0},    // b21
    {-1, 1, 0, 0},   // t1 = b12 - b11
    {1, -1, 0, 1},   // t2 = b22 - t1
    {0, 0, 0, 1},    // b22
    {0, -1, 0, 1},   // t3 = b22 - b12
    {-1, 1, 1, -1},  // -t4 = b21 - t2
};

struct Packer {
  const GemmKernels& kernels;
  int panel;
  float* to;

  // b transposed, [n][k] with rows `stride` apart.
  void pack(const float* b, int64_t stride, int64_t n, int64_t k, int depth) {
    if (depth == 0) {
      if (n == 0) return;
      const int columns = static_cast<int>(n), length = static_cast<int>(k);
      kernels.pack_b(columns, length, panel, b, stride, true, 0, gemm_panels(columns, kernels.lanes, panel), to);
      to += packed_size(kernels, n, k);
      return;
    }
    const int64_t rows = n / 2, columns = k / 2;
    std::vector<float> sum(static_cast<size_t>(rows * columns));
    for (const auto& factors : combinations) {
      for (int64_t j = 0; j < rows; ++j) {
        for (int64_t l = 0; l < columns; ++l) {
          const float* at = b + j * stride + l;
          const double quarters[] = {at[0], at[rows * stride], at[columns], at[rows * stride + columns]};
          double value = 0;
          for (int q = 0; q < 4; ++q) {
            if (factors[q] != 0) value += factors[q] * quarters[q];  // not 0 * Inf
          }
          sum[static_cast<size_t>(j * columns + l)] = static_cast<float>(value);
        }
      }
      pack(sum.data(), columns, rows, columns, depth - 1);
    }
  }
};

// dst = op(a, b), row by row.
void combine(ElementwiseKernel op, float* dst, ptrdiff_t dst_stride, const float* a, ptrdiff_t a_stride, const float* b,
             ptrdiff_t b_stride, int64_t rows, int64_t count) {
  const ClampBounds none;
  op({dst, a, b, nullptr, rows, count, dst_stride, a_stride, b_stride, none.lo, none.hi});
}

}  // namespace

double strassen_error(const StrassenShape& shape) {
  // Measured on white data: sums in order come to 1.8e-8 per root of their length, each level to 1.9 times as much.
  return 1.8e-8 * std::sqrt(static_cast<double>(shape.k)) * std::pow(1.9, shape.depth);
}

size_t strassen_packed_size(const GemmKernels& kernels, const StrassenShape& shape) {
  const Parts parts(kernels, shape);
  return parts.core + parts.more_k + parts.more_n;
}

void strassen_pack(const GemmKernels& kernels, const StrassenShape& shape, int panel, const float* weight,
                   float* packed) {
  const Rest rest(shape);
  Packer packer{kernels, panel, packed};
  packer.pack(weight, shape.k, rest.n0, rest.k0, shape.depth);
  if (rest.k > 0) packer.pack(weight + rest.k0, shape.k, rest.n0, rest.k, 0);
  if (rest.n > 0) packer.pack(weight + rest.n0 * shape.k, shape.k, rest.n, shape.k, 0);
}

// dst = plus + a * b of one level; the lower halves of a's and dst's rows may lie anywhere.
struct StrassenGemm::Product {
  int level;
  int64_t rows, n, k;
  const float* a;
  ptrdiff_t a_stride, a_down;
  float* dst;
  ptrdiff_t dst_stride, dst_down;
  const float* plus;  // with dst's strides; may be dst; null: nothing
};

StrassenGemm::StrassenGemm(Isa isa, const StrassenShape& shape, int panel, const float* packed,
                           const Activation& activation, int threads)
    : kernels_(*gemm_kernels(isa)),
      shape_(shape),
      tiling_(gemm_tiling(kernels_, panel)),
      activation_(activation),
      packed_(packed),
      leaf_(Parts(kernels_, shape).leaf),
      add_(elementwise_kernel(isa, ElementwiseOp::add, Access::full, Access::full)),
      subtract_(elementwise_kernel(isa, ElementwiseOp::sub, Access::full, Access::full)),
      activate_(activate_kernel(isa)) {
  // Strips of as many rows as a block of the kernel has at the last level, more of them for the sake of the threads.
  const int64_t unit = pieces(shape.depth - 1);
  half_ = whole(shape.m, shape.depth) / 2;
  int64_t strips = std::max<int64_t>((half_ + tiling_.row_block * unit - 1) / (tiling_.row_block * unit), 1);
  strips = (strips + threads - 1) / threads * threads;
  strip_ = std::max((half_ / unit + strips - 1) / strips, int64_t{1}) * unit;
  tasks_ = static_cast<int>(std::clamp<int64_t>((half_ + strip_ - 1) / strip_, 1, threads));
  const int64_t rows = std::max(2 * std::min(strip_, half_), pieces(shape.depth));
  const size_t kernel = kernels_.scratch_bytes(static_cast<int>(rows), static_cast<int>(shape.k), tiling_);
  const size_t padded = floats(pieces(shape.depth) * (shape.k + line)) + floats(pieces(shape.depth) * (shape.n + line));
  scratch_ = round_to_line(level_floats(shape.depth, rows, shape.n, shape.k) * sizeof(float) + kernel +
                           padded * sizeof(float));
}

size_t StrassenGemm::level_floats(int level, int64_t rows, int64_t n, int64_t k) const {
  if (level == 0) return 0;
  const size_t sums = floats(rows / 2 * (k / 2 + line)) + floats(rows / 2 * (n / 2 + line));
  const size_t result = level < shape_.depth ? floats(rows * (n + line)) : 0;
  return sums + result + level_floats(level - 1, rows / 2, n / 2, k / 2);
}

void StrassenGemm::leaf(const Product& p, const float* b, float* scratch) const {
  GemmArgs call;
  call.m = static_cast<int>(p.rows);
  call.n = static_cast<int>(p.n);
  call.k = static_cast<int>(p.k);
  call.tiling = tiling_;
  call.a = p.a;
  call.a_stride = p.a_stride;
  call.b = b;
  call.dst = p.dst;
  call.dst_stride = p.dst_stride;
  call.accumulate = p.plus == p.dst;
  if (!call.accumulate) call.epilogue.residual = p.plus;
  kernels_.run(call, 0, gemm_panels(call.n, kernels_.lanes, tiling_.panel), 0, call.m, scratch);
}

// With s1 = a21 + a22, s2 = s1 - a11, s3 = a11 - a21, s4 = a12 - s2 and the combinations of b above:
//   c11 = a11 b11 + a12 b21              u = a11 b11 + s2 t2
//   c12 = u + s1 t1 + s4 b22             c21 = u + s3 t3 - a22 t4             c22 = u + s3 t3 + s1 t1
void StrassenGemm::multiply(const Product& p, const float* b, float* scratch) const {
  if (p.level == 0) return leaf(p, b, scratch);
  const int64_t rows = p.rows / 2, n = p.n / 2, k = p.k / 2;
  if (p.plus != nullptr && p.level < shape_.depth) {  // the quarters of dst are needed for intermediate results
    Product whole = p;
    whole.dst = scratch;
    whole.dst_stride = p.n + line;
    whole.dst_down = rows * whole.dst_stride;
    whole.plus = nullptr;
    multiply(whole, b, scratch + floats(p.rows * whole.dst_stride));
    for (const bool lower : {false, true}) {
      const ptrdiff_t down = lower ? p.dst_down : 0;
      combine(add_, p.dst + down, p.dst_stride, p.plus + down, p.dst_stride, whole.dst + (lower ? whole.dst_down : 0),
              whole.dst_stride, rows, p.n);
    }
    return;
  }
  const float *a11 = p.a, *a12 = a11 + k, *a21 = a11 + p.a_down, *a22 = a21 + k;
  float *c11 = p.dst, *c12 = c11 + n, *c21 = c11 + p.dst_down, *c22 = c21 + n;
  const ptrdiff_t as = p.a_stride, cs = p.dst_stride, ss = k + line, xs = n + line;
  float* s = scratch;
  float* x = s + floats(rows * ss);
  float* deeper = x + floats(rows * xs);
  const size_t step = leaf_ * static_cast<size_t>(leaves(p.level - 1));
  const auto next = [&](const float* a, ptrdiff_t a_stride, float* dst, ptrdiff_t dst_stride, const float* plus) {
    multiply({p.level - 1, rows, n, k, a, a_stride, rows / 2 * a_stride, dst, dst_stride, rows / 2 * dst_stride, plus},
             b, deeper);
    b += step;
  };
  next(a11, as, c22, cs, nullptr);
  next(a12, as, c11, cs, c22);
  combine(add_, s, ss, a21, as, a22, as, rows, k);  // s1
  next(s, ss, x, xs, nullptr);
  combine(subtract_, s, ss, s, ss, a11, as, rows, k);  // s2
  next(s, ss, c22, cs, c22);                           // u
  combine(subtract_, s, ss, a12, as, s, ss, rows, k);  // s4
  next(s, ss, c12, cs, c22);
  combine(subtract_, s, ss, a11, as, a21, as, rows, k);  // s3
  next(s, ss, c21, cs, c22);
  combine(add_, c12, cs, c12, cs, x, xs, rows, n);
  combine(add_, c22, cs, c21, cs, x, xs, rows, n);
  next(a22, as, c21, cs, c21);
}

// What does not divide, then bias, residual and activation, for some rows whose core is done.
void StrassenGemm::finish(const StrassenArgs& args, int64_t row, int64_t rows, float* scratch) const {
  const Rest rest(shape_);
  const Parts parts(kernels_, shape_);
  const float* a = args.a + row * args.a_stride;
  float* dst = args.dst + row * args.dst_stride;
  if (rest.k > 0 && rest.n0 > 0) {
    leaf({0, rows, rest.n0, rest.k, a + rest.k0, args.a_stride, 0, dst, args.dst_stride, 0, dst}, packed_ + parts.core,
         scratch);
  }
  if (rest.n > 0) {
    leaf({0, rows, rest.n, shape_.k, a, args.a_stride, 0, dst + rest.n0, args.dst_stride, 0, nullptr},
         packed_ + parts.core + parts.more_k, scratch);
  }
  if (args.bias != nullptr) combine(add_, dst, args.dst_stride, dst, args.dst_stride, args.bias, 0, rows, shape_.n);
  if (args.residual == nullptr && activation_.kind == ActivationKind::none) return;
  for (int64_t i = 0; i < rows; ++i) {
    float* at = dst + i * args.dst_stride;
    const float* residual = args.residual != nullptr ? args.residual + (row + i) * args.residual_stride : nullptr;
    activate_(at, at, residual, shape_.n, activation_, nullptr);
  }
}

void StrassenGemm::run(const StrassenArgs& args, int64_t task, std::byte* memory) const {
  auto* scratch = reinterpret_cast<float*>(memory);
  const Rest rest(shape_);
  Product p{shape_.depth, 0, rest.n0, rest.k0, nullptr, args.a_stride, 0, nullptr, args.dst_stride, 0, nullptr};
  const Range share = split_range((half_ + strip_ - 1) / strip_, tasks_, task);
  for (int64_t begin = share.begin * strip_; begin < std::min(share.end * strip_, half_); begin += strip_) {
    const int64_t rows = std::min(strip_, half_ - begin);
    p.rows = 2 * rows;
    p.a = args.a + begin * args.a_stride;
    p.a_down = half_ * args.a_stride;
    p.dst = args.dst + begin * args.dst_stride;
    p.dst_down = half_ * args.dst_stride;
    multiply(p, packed_, scratch);
    finish(args, begin, rows, scratch);
    finish(args, half_ + begin, rows, scratch);
  }
  const int64_t last = shape_.m - 2 * half_;
  if (task + 1 < tasks_ || last == 0) return;
  // Too few rows for a strip are padded with zeros.
  p.rows = pieces(shape_.depth);
  float* a = scratch;
  float* dst = a + floats(p.rows * (rest.k0 + line));
  float* deeper = dst + floats(p.rows * (rest.n0 + line));
  p.a_stride = rest.k0 + line;
  p.dst_stride = rest.n0 + line;
  std::fill_n(a, p.rows * p.a_stride, 0.f);
  for (int64_t i = 0; i < last; ++i) std::copy_n(args.a + (2 * half_ + i) * args.a_stride, rest.k0, a + i * p.a_stride);
  p.a = a;
  p.a_down = p.rows / 2 * p.a_stride;
  p.dst = dst;
  p.dst_down = p.rows / 2 * p.dst_stride;
  multiply(p, packed_, deeper);
  for (int64_t i = 0; i < last; ++i) {
    std::copy_n(dst + i * p.dst_stride, rest.n0, args.dst + (2 * half_ + i) * args.dst_stride);
  }
  finish(args, 2 * half_, last, deeper);
}

}  // namespace softneuro
