// A part of a larger blob copied together, row by row of what is side by side. Elements of any type.
#include <cstring>

#include "layers/shared/moving.h"

namespace softneuro {
namespace {

class AdaptGather final : public Routine {
 public:
  AdaptGather(DType dtype, const Layout& layout)
      : Routine([&] {
          const Schema schema = f32_nchw.with(dtype);
          return moving_info("adapt", "gather", schema.with(layout.with_strides()), schema.with(layout));
        }()) {}

  Refusal check(const Problem& problem) const override { return refuse_post_ops(problem); }

  std::unique_ptr<const Prepared> prepare(const Problem& problem, const Tuning&,
                                          std::shared_ptr<const Packed>) const override {
    return prepared_call([threads = problem.threads](const RunArgs& args) { run(threads, args); });
  }

 private:
  static void run(int threads, const RunArgs& args) {
    const TensorView &in = args.in[0], &out = args.out;
    const Shape& shape = out.shape;
    const std::vector<int> order = memory_order(shape.rank(), in.schema.layout);
    const int64_t length = shape[order.back()], rows = length == 0 ? 0 : shape.elements() / length;
    const size_t bytes = dtype_bytes(out.schema.dtype, length);
    const int64_t tasks = std::min(rows, task_count(shape.elements(), threads));
    args.parallel_for(tasks, [&](int64_t task) {
      const Range part = split_range(rows, tasks, task);
      for (int64_t row = part.begin; row < part.end; ++row) {
        int64_t from = 0, to = 0, rest = row;
        for (size_t i = order.size() - 1; i-- > 0;) {
          const auto axis = static_cast<size_t>(order[i]);
          const int64_t index = rest % shape[order[i]];
          rest /= shape[order[i]];
          from += index * in.strides[axis];
          to += index * out.strides[axis];
        }
        std::memcpy(out.at(to), in.at(from), bytes);
      }
    });
  }
};

}  // namespace

void adapt_gather_routines(RoutineList& list) {
  for (const DType dtype : all_dtypes()) {
    for (const Layout& layout : {Layout::nchw(), Layout::nhwc()}) list.add<AdaptGather>(dtype, layout);
  }
}

}  // namespace softneuro
