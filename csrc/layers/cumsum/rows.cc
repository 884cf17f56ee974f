#include <algorithm>
#include <array>
#include <type_traits>

#include "kernels/integers.h"
#include "layers/cumsum/cumsum.h"
#include "layers/shared/moving.h"

namespace softneuro {
namespace {

constexpr int64_t side_by_side = 64;  // sums at once

// Integers wrap around. Sums of reals have more digits than what is written of them.
template <typename T>
struct SumOf {
  using Type = std::make_unsigned_t<T>;
};
template <>
struct SumOf<float> {
  using Type = double;
};

// One task for each sequence of what lies side by side behind the axis.
template <typename T>
void cumsum(const RunArgs& args, const CumsumParams& p, int threads) {
  using Sum = typename SumOf<T>::Type;
  const TensorView &in = args.in[0], &out = args.out;
  const Shape& shape = out.shape;
  if (shape.elements() == 0) return;
  const int64_t size = shape[p.axis], inner = shape.product(p.axis + 1, shape.rank());
  const int64_t outer = shape.product(0, p.axis);
  // Only axis 0 may have a stride of its own, which counts where the axis is another.
  const int64_t images = p.axis == 0 ? 1 : shape[0], each = outer / images;
  const int64_t in_step = p.axis == 0 ? in.strides[0] : inner, out_step = p.axis == 0 ? out.strides[0] : inner;
  const int64_t parts = ceil_div(inner, side_by_side), items = outer * parts;
  const int64_t tasks = std::min(items, task_count(shape.elements(), threads));
  args.parallel_for(tasks, [&](int64_t task) {
    const Range share = split_range(items, tasks, task);
    for (int64_t item = share.begin; item < share.end; ++item) {
      const int64_t row = item / parts, image = row / each, rest = row % each * size * inner;
      const Range part = split_range(inner, parts, item % parts);
      const T* from = in.as<T>() + (p.axis == 0 ? 0 : image * in.strides[0]) + rest + part.begin;
      T* to = out.as<T>() + (p.axis == 0 ? 0 : image * out.strides[0]) + rest + part.begin;
      std::array<Sum, side_by_side> sums{};
      for (int64_t i = 0; i < size; ++i) {
        const int64_t at = p.reverse ? size - 1 - i : i;
        for (int64_t k = 0; k < part.end - part.begin; ++k) {
          Sum& sum = sums[static_cast<size_t>(k)];
          const Sum before = sum;
          sum += static_cast<Sum>(from[at * in_step + k]);
          to[at * out_step + k] = static_cast<T>(p.exclusive ? before : sum);
        }
      }
    }
  });
}

template <typename T>
class CumsumRows final : public Routine {
 public:
  CumsumRows() : Routine(moving_info("cumsum", "rows", f32_nchw.with(dtype_of<T>))) {}

  Refusal check(const Problem& problem) const override { return refuse_post_ops(problem); }
  std::unique_ptr<const Prepared> prepare(const Problem& problem, const Tuning&,
                                          std::shared_ptr<const Packed>) const override {
    return prepared_call([p = cumsum_params(*problem.layer, problem.in[0].shape),
                          threads = problem.threads](const RunArgs& args) { cumsum<T>(args, p, threads); });
  }
};

}  // namespace

void cumsum_rows(RoutineList& list) {
  list.add<CumsumRows<float>>();
  list.add<CumsumRows<int64_t>>();
  list.add<CumsumRows<int32_t>>();
}

}  // namespace softneuro
