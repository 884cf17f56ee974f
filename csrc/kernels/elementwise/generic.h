// The element-wise kernels over Vf; a level's file instantiates the table. Contract: elementwise.h.
#pragma once

#include "kernels/elementwise/elementwise.h"
#include "kernels/elementwise/waves.h"
#include "kernels/store/visit.h"
#include "kernels/unroll.h"

namespace softneuro::SN_ISA {

// One element at a time: a vector exp(b * log(a)) loses digits in proportion to its result's exponent.
SN_INLINE Vf pow(Vf a, Vf b) {
  float base[lanes], exponent[lanes];
  store(base, a);
  store(exponent, b);
  for (int i = 0; i < lanes; ++i) base[i] = __builtin_powf(base[i], exponent[i]);
  return load(base);
}

// pow(a, 1/2) is the square root but at -0, which gives 0, and at -infinity, which gives infinity.
SN_INLINE Vf root(Vf a) {
  const Vf infinite = set(__builtin_inff());
  return select(eq(a, zero() - infinite), infinite, sqrt(a + zero()));
}

template <ElementwiseOp op>
SN_INLINE Vf elementwise(Vf a, Vf b, Vf c) {
  using Op = ElementwiseOp;
  if constexpr (op == Op::add) return a + b;
  if constexpr (op == Op::sub) return a - b;
  if constexpr (op == Op::mul) return a * b;
  if constexpr (op == Op::div) return a / b;
  if constexpr (op == Op::min) return min(a, b);
  if constexpr (op == Op::max) return max(a, b);
  if constexpr (op == Op::pow) return pow(a, b);
  if constexpr (op == Op::square) return a * a;
  if constexpr (op == Op::abs) return abs(a);
  if constexpr (op == Op::sqrt) return sqrt(a);
  if constexpr (op == Op::rsqrt) return set(1.0f) / sqrt(a);
  if constexpr (op == Op::round) return SN_ISA::round(a);
  if constexpr (op == Op::sin) return wave<0>(a);
  if constexpr (op == Op::cos) return wave<1>(a);
  if constexpr (op == Op::root) return root(a);
  if constexpr (op == Op::inverse_root) return set(1.0f) / root(a);
  if constexpr (op == Op::prelu) return select(lt(zero(), a), a, b * a);
  if constexpr (op == Op::scale_shift) return fma(a, b, c);
}

template <class Read, class T>
SN_INLINE Vf value_of(const Read& reading, const T* p, int n) {
  return n == lanes ? reading.value(p) : reading.value(p, n);
}

// What a row repeats is loaded once.
template <Access access, class Read, class T>
SN_INLINE Vf load_repeated(const Read& reading, const T* p) {
  if constexpr (access == Access::scalar) {
    if constexpr (is_same<T, float>) return set(*p);
    float value[lanes];
    store(value, reading.value(p, 1));
    return set(value[0]);
  }
  if constexpr (access == Access::block) return reading.value(p);
  return zero();
}

// Bytes less their zero point as integers, which more of a core's pipes take off than floats.
class ReadingBytes {
 public:
  SN_INLINE explicit ReadingBytes(const ElementFormat& e) : zero_(Vi{} + e.zero), scale_(set(e.scale)) {}
  SN_INLINE Vf value(const uint8_t* p) const { return to_float(widen(p) - zero_) * scale_; }
  SN_INLINE Vf value(const uint8_t* p, int n) const { return to_float(widen_n(p, n) - zero_) * scale_; }
  SN_INLINE Vf add_to(Vf x, const uint8_t* p) const { return fused(to_float(widen(p) - zero_), scale_, x); }
  SN_INLINE Vf add_to(Vf x, const uint8_t* p, int n) const { return fused(to_float(widen_n(p, n) - zero_), scale_, x); }

 private:
  Vi zero_;
  Vf scale_;
};
// Results that are steps as they are.
struct WritingSteps : Writing<uint8_t> {
  using Writing<uint8_t>::Writing;
  SN_INLINE Vf steps(Vf value) const { return value; }
};

template <ElementwiseOp op, Access a_access, Access b_access, class T, class Read, class Write>
SN_INLINE void elementwise_rows(const ElementwiseArgs& args, const ElementwiseFormats& formats) {
  constexpr bool ternary = op == ElementwiseOp::scale_shift;
  const Read read_a(formats.a), read_b(formats.b);
  const Write writing(formats.dst);
  const ClampBounds bounds = writing.bounds({args.lo, args.hi});
  const Vf lo = set(bounds.lo), hi = set(bounds.hi);
  for (int64_t r = 0; r < args.rows; ++r) {
    T* dst = static_cast<T*>(args.dst) + r * args.dst_stride;
    const T* a = static_cast<const T*>(args.a) + r * args.a_stride;
    const T* b = static_cast<const T*>(args.b) + r * args.b_stride;
    const T* c = ternary ? static_cast<const T*>(args.c) + r * args.b_stride : b;
    const Vf repeated_a = load_repeated<a_access>(read_a, a), repeated_b = load_repeated<b_access>(read_b, b);
    const Vf repeated_c = load_repeated<b_access>(read_b, c);
    const auto row_part = [&](int64_t i, auto n) {
      const Vf vb = b_access == Access::full ? value_of(read_b, b + i, n) : repeated_b;
      const Vf vc = b_access == Access::full && ternary ? value_of(read_b, c + i, n) : repeated_c;
      Vf x;
      if constexpr (is_quantized<T> && op == ElementwiseOp::add) {
        x = n == lanes ? read_a.add_to(vb, a + i) : read_a.add_to(vb, a + i, n);
      } else {
        x = elementwise<op>(a_access == Access::full ? value_of(read_a, a + i, n) : repeated_a, vb, vc);
      }
      return clamp(writing.steps(x), lo, hi);
    };
    int64_t i = 0;
#pragma GCC unroll 4
    for (; i + lanes <= args.count; i += lanes) writing.put(dst + i, row_part(i, Index<lanes>{}));
    if (i < args.count) {
      const int rest = static_cast<int>(args.count - i);
      writing.put(dst + i, row_part(i, rest), rest);
    }
  }
}

// Elements become floats in a buffer, a piece of a row at a time, and a kernel of floats computes.
[[gnu::noinline]] inline void elementwise_pieces(const ElementwiseArgs& args, ElementwiseKernel kernel, Access a_access,
                                                 Access b_access) {
  const ElementwiseFormats& formats = *args.formats;
  alignas(64) float dst[buffered], a[buffered], b[buffered], c[buffered];
  for (int64_t r = 0; r < args.rows; ++r) {
    for (int64_t i = 0; i < args.count; i += buffered) {
      const int64_t n = args.count - i < buffered ? args.count - i : buffered;
      const auto take = [&](const void* from, const ElementFormat& elements, int64_t row, Access access,
                            float* values) {
        if (access == Access::full) return read_values(elements, from, row + i, n, values);
        if (i == 0) read_values(elements, from, row, access == Access::scalar ? 1 : lanes, values);
      };
      take(args.a, formats.a, r * args.a_stride, a_access, a);
      take(args.b, formats.b, r * args.b_stride, b_access, b);
      if (args.c != nullptr) take(args.c, formats.b, r * args.b_stride, b_access, c);
      kernel({dst, a, b, c, 1, n, 0, 0, 0, args.lo, args.hi});
      write_values(formats.dst, dst, args.dst, r * args.dst_stride + i, n);
    }
  }
}

template <ElementwiseOp op, Access a_access, Access b_access>
void elementwise_any(const ElementwiseArgs& args) {
  using Op = ElementwiseOp;
  if (args.formats == nullptr)
    return elementwise_rows<op, a_access, b_access, float, Reading<float>, Writing<float>>(args, {});
  if constexpr ((op == Op::add || op == Op::mul) && a_access == Access::full && b_access != Access::block) {
    const ElementwiseFormats& f = *args.formats;
    const bool bytes = f.dst.type == DType::uint8 && f.a.type == DType::uint8 && f.b.type == DType::uint8;
    if (bytes && f.dst.scale == 1)
      return elementwise_rows<op, a_access, b_access, uint8_t, ReadingBytes, WritingSteps>(args, f);
  }
  elementwise_pieces(args, elementwise_any<op, a_access, b_access>, a_access, b_access);
}

// The five ways of access of one op, in the table's order.
#define SN_ELEMENTWISE_ROW(name, formula)                                      \
  {SN_ISA::elementwise_any<ElementwiseOp::name, Access::full, Access::full>,   \
   SN_ISA::elementwise_any<ElementwiseOp::name, Access::full, Access::scalar>, \
   SN_ISA::elementwise_any<ElementwiseOp::name, Access::full, Access::block>,  \
   SN_ISA::elementwise_any<ElementwiseOp::name, Access::scalar, Access::full>, \
   SN_ISA::elementwise_any<ElementwiseOp::name, Access::block, Access::full>},

}  // namespace softneuro::SN_ISA

namespace softneuro {

SN_KERNEL_TABLE(ElementwiseTable, elementwise) = {SN_ELEMENTWISE_OPS(SN_ELEMENTWISE_ROW)};

}  // namespace softneuro
