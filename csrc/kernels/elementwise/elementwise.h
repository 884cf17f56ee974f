// Functions of two or three operands over a grid of rows, one of the operands full and the other maybe repeated.
#pragma once

#include <cstdint>

#include "base/arch.h"
#include "kernels/epilogue.h"

namespace softneuro {

// SN_ELEMENTWISE_OPS(name, formula). NaN and infinities as in <cmath>, but min and max give NaN where either is one.
#define SN_ELEMENTWISE_OPS(X)                                      \
  X(add, "a + b")                                                  \
  X(sub, "a - b")                                                  \
  X(mul, "a * b")                                                  \
  X(div, "a / b")                                                  \
  X(min, "min(a, b)")                                              \
  X(max, "max(a, b)")                                              \
  X(pow, "pow(a, b)")                                              \
  X(square, "a * a")                                               \
  X(abs, "|a|")                                                    \
  X(sqrt, "sqrt(a)")                                               \
  X(rsqrt, "1 / sqrt(a)")                                          \
  X(round, "a, to the nearest whole number, of ties the even one") \
  X(sin, "sin(a)")                                                 \
  X(cos, "cos(a)")                                                 \
  X(root, "pow(a, 1/2)")                                           \
  X(inverse_root, "pow(a, -1/2)")                                  \
  X(prelu, "a > 0 ? a : b * a")                                    \
  X(scale_shift, "a * b + c, c accessed as b is")

enum class ElementwiseOp : uint8_t {
#define SN_ENUM(name, formula) name,
  SN_ELEMENTWISE_OPS(SN_ENUM)
#undef SN_ENUM
};
inline constexpr int elementwise_ops = 0
#define SN_COUNT(name, formula) +1
    SN_ELEMENTWISE_OPS(SN_COUNT)
#undef SN_COUNT
    ;

// How a row of the grid reads an operand: an element each, one for all, or one block of `isa_block` elements again and
// again (count is then a multiple of it). One of a pair is full.
enum class Access : uint8_t { full, scalar, block };

// Where not all is float32; c is as b. Sums and products of uint8 in steps of the result (dst.scale = 1) are made of
// bytes at once and have the same bits at every level; all else goes through a buffer of floats.
struct ElementwiseFormats {
  ElementFormat dst = {}, a = {}, b = {};
};

// dst[r][i] = clamp(op(a[r][i], b[r][i]), lo, hi) for r < rows, i < count. Strides, in elements, lead from row to row;
// 0 repeats a row. dst may be a or b where those are full and have its stride and type.
struct ElementwiseArgs {
  void* dst;
  const void *a, *b, *c;  // c: scale_shift only
  int64_t rows, count;
  int64_t dst_stride, a_stride, b_stride;
  float lo, hi;                                 // infinite for no bound; NaN stays NaN
  const ElementwiseFormats* formats = nullptr;  // null: float32
};
using ElementwiseKernel = void (*)(const ElementwiseArgs&);

// [op][full full, full scalar, full block, scalar full, block full]
using ElementwiseTable = ElementwiseKernel[elementwise_ops][5];
ElementwiseKernel elementwise_kernel(Isa isa, ElementwiseOp op, Access a, Access b);

}  // namespace softneuro
