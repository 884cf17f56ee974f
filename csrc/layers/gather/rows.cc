#include <algorithm>

#include "layers/gather/gather.h"
#include "layers/shared/moving.h"

namespace softneuro {
namespace {

// T is as large as an element. A row is what lies along the last axis.
template <typename T, typename Id>
void gather(const RunArgs& args, const GatherParams& p, int threads) {
  const TensorView &x = args.in[0], &ids = args.in[1], &out = args.out;
  const Shape& shape = out.shape;
  const int last = shape.rank() - 1;
  if (shape.elements() == 0) return;
  const int64_t length = shape[last], rows = shape.elements() / length;
  const auto stride = [](const TensorView& view, int axis) { return view.strides[static_cast<size_t>(axis)]; };
  const int64_t step = stride(x, p.axis), along = p.axis == last ? 0 : stride(x, last);
  const int64_t to_step = stride(out, last), id_step = stride(ids, last);
  const int64_t tasks = std::min(rows, task_count(shape.elements(), threads));
  args.parallel_for(tasks, [&](int64_t task) {
    const Range part = split_range(rows, tasks, task);
    for (int64_t row = part.begin; row < part.end; ++row) {
      int64_t from = 0, to = 0, id = 0, rest = row;
      for (int axis = last - 1; axis >= 0; --axis) {
        const int64_t index = rest % shape[axis];
        rest /= shape[axis];
        from += axis == p.axis ? 0 : index * stride(x, axis);
        to += index * stride(out, axis);
        id += index * stride(ids, axis);
      }
      bool outside = false;
      for (int64_t i = 0; i < length; ++i) {
        const auto given = static_cast<int64_t>(ids.as<Id>()[id + i * id_step]);
        const int64_t index = p.from_end && given < 0 ? given + p.size : given;
        const bool exists = index >= 0 && index < p.size;
        outside = outside || !exists;
        static_cast<T*>(out.data)[to + i * to_step] =
            static_cast<const T*>(x.data)[from + i * along + (exists ? index : 0) * step];
      }
      if (outside) args.reject();
    }
  });
}

template <typename Id>
void gather(const RunArgs& args, const GatherParams& p, int threads) {
  switch (dtype_bytes(args.out.schema.dtype, 1)) {
    case 1:
      return gather<uint8_t, Id>(args, p, threads);
    case 4:
      return gather<uint32_t, Id>(args, p, threads);
    default:
      return gather<uint64_t, Id>(args, p, threads);
  }
}

class GatherRows final : public Routine {
 public:
  GatherRows(DType values, DType ids)
      : Routine([&] {
          RoutineInfo info = moving_info("gather", "rows", f32_nchw.with(values));
          info.others = {f32_nchw.with(ids)};
          return info;
        }()) {}

  Refusal check(const Problem& problem) const override { return refuse_post_ops(problem); }
  std::unique_ptr<const Prepared> prepare(const Problem& problem, const Tuning&,
                                          std::shared_ptr<const Packed>) const override {
    return prepared_call([p = gather_params(*problem.layer, problem.in[0].shape), threads = problem.threads,
                          wide = info().others[0].dtype == DType::int64](const RunArgs& args) {
      wide ? gather<int64_t>(args, p, threads) : gather<int32_t>(args, p, threads);
    });
  }
};

}  // namespace

void gather_rows(RoutineList& list) {
  for (const DType ids : {DType::int64, DType::int32}) {
    for (const DType values : {DType::float32, DType::int64, DType::int32, DType::boolean}) {
      list.add<GatherRows>(values, ids);
    }
  }
}

}  // namespace softneuro
