// The element-wise kernels and the activation against doubles: every function, access and type of elements, rows of any
// length.
#include "kernels/elementwise/elementwise.h"

#include "kernels/activate/activate.h"

#include "tests/typed.h"

namespace softneuro::test {
namespace {

double truth(ElementwiseOp op, double a, double b, double c) {
  using Op = ElementwiseOp;
  switch (op) {
    case Op::add:
      return a + b;
    case Op::sub:
      return a - b;
    case Op::mul:
      return a * b;
    case Op::div:
      return a / b;
    case Op::min:
      return std::fmin(a, b);
    case Op::max:
      return std::fmax(a, b);
    case Op::pow:
      return std::pow(a, b);
    case Op::square:
      return a * a;
    case Op::abs:
      return std::fabs(a);
    case Op::round:
      return std::nearbyint(a);
    case Op::sin:
      return std::sin(a);
    case Op::cos:
      return std::cos(a);
    case Op::sqrt:
    case Op::root:
      return std::sqrt(a);
    case Op::rsqrt:
    case Op::inverse_root:
      return 1 / std::sqrt(a);
    case Op::prelu:
      return a > 0 ? a : b * a;
    case Op::scale_shift:
      return a * b + c;
  }
  return 0;
}

// Where no function is of a negative number or divides by little.
bool is_tame(ElementwiseOp op, double a, double b) {
  using Op = ElementwiseOp;
  if (op == Op::div) return std::fabs(b) > 0.1;
  if (op == Op::sqrt || op == Op::root) return a >= 0;
  if (op == Op::round) return std::fabs(std::fabs(a - std::floor(a)) - 0.5) > 0.001;
  return (op != Op::pow && op != Op::rsqrt && op != Op::inverse_root) || a > 0.1;
}

void check(Isa isa, ElementwiseOp op) {
  constexpr Access pairs[][2] = {{Access::full, Access::full},
                                 {Access::full, Access::scalar},
                                 {Access::full, Access::block},
                                 {Access::scalar, Access::full},
                                 {Access::block, Access::full}};
  const auto& [a_access, b_access] = pairs[pick(0, 4)];
  const int lanes = isa_block(isa), unit = a_access == Access::block || b_access == Access::block ? lanes : 1;
  ElementwiseArgs args{};
  args.rows = pick(1, 4), args.count = unit * pick(1, pick(0, 3) ? 70 / unit : 700 / unit);
  args.dst_stride = args.count + pick(0, 3);
  const auto length = [&](Access access) {
    return access == Access::full ? args.count : access == Access::block ? lanes : 1;
  };
  args.a_stride = a_access == Access::full ? args.dst_stride : length(a_access);
  args.b_stride = pick(0, 1) ? length(b_access) + 1 : 0;
  args.lo = pick(0, 1) ? -INFINITY : -0.5F, args.hi = pick(0, 1) ? INFINITY : 0.75F;

  ElementwiseFormats formats;
  const int types = pick(0, 3);
  if (types > 0) formats = {random_elements(), random_elements(), random_elements()};
  if (types == 2) formats.a.type = formats.b.type = formats.dst.type;
  for (ElementFormat* e : {&formats.dst, &formats.a, &formats.b}) {
    if (e->type == DType::uint8) e->least = 0, e->most = 255, e->zero = pick(0, 255), e->scale = 0.02F;
    if (e->type == DType::int8) e->least = -128, e->most = 127, e->zero = pick(-128, 127), e->scale = 0.02F;
  }
  if (pick(0, 1) && element_bytes(formats.dst.type) == 1)
    formats.dst.scale = 1;  // bytes have loops of their own where it is
  const auto values = [&](int64_t stride, Access access) {
    return random_data(static_cast<size_t>((args.rows - 1) * stride + length(access)), 2);
  };
  Typed a(formats.a, values(args.a_stride, a_access)), b(formats.b, values(args.b_stride, b_access));
  Typed c(formats.b, values(args.b_stride, b_access)),
      dst(formats.dst, static_cast<size_t>(args.rows * args.dst_stride));
  args.dst = dst.data(), args.a = a.data(), args.b = b.data();
  if (op == ElementwiseOp::scale_shift) args.c = c.data();
  if (types > 0) args.formats = &formats;
  // In place, where the operand is as long as the result.
  const bool in_place = types == 2 && formats.a.zero == formats.dst.zero && a_access == Access::full;
  if (in_place) std::memcpy(dst.data(), a.data(), a.size() * element_bytes(formats.a.type)), args.a = dst.data();
  elementwise_kernel(isa, op, a_access, b_access)(args);

  const auto at = [&](int64_t r, int64_t i, int64_t stride, Access access) {
    return static_cast<size_t>(r * stride + (access == Access::full ? i : access == Access::block ? i % lanes : 0));
  };
  bool right = true;
  for (int64_t r = 0; r < args.rows; ++r) {
    for (int64_t i = 0; i < args.count; ++i) {
      const size_t other = at(r, i, args.b_stride, b_access);
      const double x = a.value(at(r, i, args.a_stride, a_access)), y = b.value(other), z = c.value(other);
      if (!is_tame(op, x, y)) continue;
      const double all = truth(op, x, y, z);
      const double want = std::fmin(std::fmax(all, args.lo), args.hi),
                   error = 2e-6 * (2 + std::fabs(x) + std::fabs(all));
      right = right && dst.is_near(static_cast<size_t>(r * args.dst_stride + i), want, error);
    }
  }
  if (right || ++failures() > 20) return;
  std::printf("elementwise %s: op %d of accesses %d %d, types %d %d to %d, %dx%d\n", std::string(isa_name(isa)).c_str(),
              static_cast<int>(op), static_cast<int>(a_access), static_cast<int>(b_access),
              static_cast<int>(formats.a.type), static_cast<int>(formats.b.type), static_cast<int>(formats.dst.type),
              static_cast<int>(args.rows), static_cast<int>(args.count));
}

void check_activate(Isa isa) {
  const auto count = static_cast<size_t>(pick(1, pick(0, 3) ? 70 : 700));
  const Activation act = random_activation();
  ActivateFormats formats;
  const int types = pick(0, 3);
  if (types > 0) formats = {random_elements(), random_elements(), random_elements()};
  Typed src(formats.src, random_data(count, 2)), residual(formats.residual, random_data(count)),
      dst(formats.dst, count);
  const bool added = pick(0, 1) != 0;
  activate_kernel(isa)(dst.data(), src.data(), added ? residual.data() : nullptr, static_cast<int64_t>(count), act,
                       types > 0 ? &formats : nullptr);
  bool right = true;
  for (size_t i = 0; i < count; ++i) {
    const double want = apply(act, src.value(i) + (added ? residual.value(i) : 0));
    if (!std::isfinite(want) || std::fabs(want) > 100) continue;  // logarithms
    right = right && dst.is_near(i, want, 4e-6 * (1 + std::fabs(want)));
  }
  if (right || ++failures() > 20) return;
  std::printf("activate %s: kind %d, types %d to %d\n", std::string(isa_name(isa)).c_str(), static_cast<int>(act.kind),
              static_cast<int>(formats.src.type), static_cast<int>(formats.dst.type));
}

}  // namespace
}  // namespace softneuro::test

SN_TEST(elementwise_test) {
  using namespace softneuro;
  for (const Isa isa : available_isas()) {
    for (int i = 0; i < 1000; ++i) test::check_activate(isa);
    for (int op = 0; op < elementwise_ops; ++op) {
      for (int i = 0; i < 500; ++i) test::check(isa, static_cast<ElementwiseOp>(op));
    }
  }
}
