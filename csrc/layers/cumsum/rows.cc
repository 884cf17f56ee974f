#include <type_traits>

#include "layers/cumsum/cumsum.h"
#include "layers/shared/moving.h"

namespace softneuro {
namespace {

// One task for each sequence of what lies side by side behind the axis.
template <typename T>
void cumsum(const RunArgs& args, int axis, int threads) {
  using U = std::make_unsigned_t<T>;  // which wraps around
  const TensorView &in = args.in[0], &out = args.out;
  const Shape& shape = out.shape;
  const int64_t size = shape[axis], inner = shape.product(axis + 1, shape.rank()), outer = shape.product(0, axis);
  if (shape.elements() == 0) return;
  // Only axis 0 may have a stride of its own, which counts where the axis is another.
  const int64_t images = axis == 0 ? 1 : shape[0], each = outer / images;
  const int64_t in_step = axis == 0 ? in.strides[0] : inner, out_step = axis == 0 ? out.strides[0] : inner;
  const int64_t tasks = std::min(outer, task_count(shape.elements(), threads));
  args.parallel_for(tasks, [&](int64_t task) {
    const Range part = split_range(outer, tasks, task);
    for (int64_t row = part.begin; row < part.end; ++row) {
      const int64_t image = row / each, rest = row % each * size * inner;
      const T* from = in.as<T>() + (axis == 0 ? 0 : image * in.strides[0]) + rest;
      T* to = out.as<T>() + (axis == 0 ? 0 : image * out.strides[0]) + rest;
      for (int64_t i = 0; i < size; ++i) {
        for (int64_t k = 0; k < inner; ++k) {
          const U before = i == 0 ? 0 : static_cast<U>(to[(i - 1) * out_step + k]);
          to[i * out_step + k] = static_cast<T>(before + static_cast<U>(from[i * in_step + k]));
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
    return prepared_call([axis = static_cast<int>(problem.layer->attrs.integer("axis")),
                          threads = problem.threads](const RunArgs& args) { cumsum<T>(args, axis, threads); });
  }
};

}  // namespace

void cumsum_rows(RoutineList& list) {
  list.add<CumsumRows<int64_t>>();
  list.add<CumsumRows<int32_t>>();
}

}  // namespace softneuro
