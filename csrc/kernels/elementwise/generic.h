// The element-wise kernels over Vf; a level's file instantiates the table.
#pragma once

#include "kernels/elementwise/elementwise.h"
#include "kernels/store/policy.h"

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
  if constexpr (op == Op::root) return root(a);
  if constexpr (op == Op::inverse_root) return set(1.0f) / root(a);
  if constexpr (op == Op::prelu) return select(lt(zero(), a), a, b * a);
  if constexpr (op == Op::scale_shift) return fma(a, b, c);
}

// What a row repeats is loaded once.
template <Access access>
SN_INLINE Vf load_repeated(const float* p) {
  if constexpr (access == Access::scalar) return set(*p);
  if constexpr (access == Access::block) return load(p);
  return zero();
}

template <ElementwiseOp op, Access a_access, Access b_access>
void elementwise_rows(const ElementwiseArgs& args) {
  constexpr bool ternary = op == ElementwiseOp::scale_shift;
  const Vf lo = set(args.lo), hi = set(args.hi);
  for (int64_t r = 0; r < args.rows; ++r) {
    float* dst = args.dst + r * args.dst_stride;
    const float* a = args.a + r * args.a_stride;
    const float* b = args.b + r * args.b_stride;
    const float* c = ternary ? args.c + r * args.b_stride : b;
    const Vf repeated_a = load_repeated<a_access>(a), repeated_b = load_repeated<b_access>(b);
    const Vf repeated_c = load_repeated<b_access>(c);
    const auto row_part = [&](int64_t i, const auto& get) {
      const Vf va = a_access == Access::full ? get(a + i) : repeated_a;
      const Vf vb = b_access == Access::full ? get(b + i) : repeated_b;
      const Vf vc = b_access == Access::full && ternary ? get(c + i) : repeated_c;
      return clamp(elementwise<op>(va, vb, vc), lo, hi);
    };
    int64_t i = 0;
#pragma GCC unroll 4
    for (; i + lanes <= args.count; i += lanes) {
      Writing<float>().put(dst + i, row_part(i, [](const float* p) { return load(p); }));
    }
    if (i < args.count) {
      const int rest = static_cast<int>(args.count - i);
      Writing<float>().put(dst + i, row_part(i, [rest](const float* p) { return load_n(p, rest); }), rest);
    }
  }
}

// The five ways of access of one op, in the table's order.
#define SN_ELEMENTWISE_ROW(name, formula)                                       \
  {SN_ISA::elementwise_rows<ElementwiseOp::name, Access::full, Access::full>,   \
   SN_ISA::elementwise_rows<ElementwiseOp::name, Access::full, Access::scalar>, \
   SN_ISA::elementwise_rows<ElementwiseOp::name, Access::full, Access::block>,  \
   SN_ISA::elementwise_rows<ElementwiseOp::name, Access::scalar, Access::full>, \
   SN_ISA::elementwise_rows<ElementwiseOp::name, Access::block, Access::full>},

}  // namespace softneuro::SN_ISA

namespace softneuro {

SN_KERNEL_TABLE(ElementwiseTable, elementwise) = {SN_ELEMENTWISE_OPS(SN_ELEMENTWISE_ROW)};

}  // namespace softneuro
