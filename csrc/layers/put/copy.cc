#include <algorithm>
#include <cstring>

#include "layers/put/put.h"
#include "layers/shared/moving.h"

namespace softneuro {
namespace {

// Where the row of index k is, of all that comes before the axis taken as one.
const void* row_at(const TensorView& view, int axis, int64_t outer, int64_t k, int64_t size, int64_t inner) {
  if (axis == 0) return view.at(k * view.strides[0]);
  const int64_t image = std::max<int64_t>(view.shape.product(1, axis), 1);  // axis 0 may have a stride of its own
  return view.at(outer / image * view.strides[0] + (outer % image * size + k) * inner);
}

template <typename Id>
class PreparedPut final : public Prepared {
 public:
  explicit PreparedPut(const Problem& problem)
      : p_(put_params(*problem.layer, problem.in[0].shape)),
        axis_(static_cast<int>(problem.layer->attrs.integer("axis"))),
        threads_(problem.threads) {}

  void run(const RunArgs& args) const override {
    const TensorView &x = args.in[0], &rows = args.in[1], &ids = args.in[2], &out = args.out;
    if (x.data != out.data) copy_blob(x, out, threads_, args.parallel_for);  // a caller that has the two apart
    const int64_t count = ids.shape[0];
    // The host runs a rejected call again, and may raise before it comes here: then the caller's memory has to be what
    // it was. Where it does come here, it writes the same rows to the same places, and those that this run has written
    // before it was rejected are the host's to write over.
    if (args.rejecting != nullptr && args.rejecting->load(std::memory_order_relaxed) >= 0) return;
    for (int64_t k = 0; k < count; ++k) {
      if (const int64_t at = place(ids, k); at < 0 || at >= p_.size) return args.reject();
    }
    const size_t bytes = dtype_bytes(out.schema.dtype, p_.inner);
    // A task has all rows of its part, in order: of equal indices the last one counts.
    const int64_t tasks = std::min(p_.outer, task_count(p_.outer * count * p_.inner, threads_));
    if (tasks == 0) return;
    args.parallel_for(tasks, [&](int64_t task) {
      const Range part = split_range(p_.outer, tasks, task);
      for (int64_t i = part.begin; i < part.end; ++i) {
        for (int64_t k = 0; k < count; ++k) {
          void* const to = const_cast<void*>(row_at(out, axis_, i, place(ids, k), p_.size, p_.inner));
          std::memcpy(to, row_at(rows, axis_, i, k, count, p_.inner), bytes);
        }
      }
    });
  }

 private:
  int64_t place(const TensorView& ids, int64_t k) const {
    const auto id = static_cast<int64_t>(ids.as<Id>()[k * ids.strides[0]]);
    return p_.from_end && id < 0 ? id + p_.size : id;
  }

  PutParams p_;
  int axis_, threads_;
};

class PutCopy final : public Routine {
 public:
  PutCopy(DType values, DType ids)
      : Routine([&] {
          RoutineInfo info = moving_info("put", "copy", f32_nchw.with(values));
          info.others = {f32_nchw.with(values), f32_nchw.with(ids)};
          return info;
        }()) {}

  Refusal check(const Problem& problem) const override {
    const DType storage = put_storage(*problem.layer, problem.in[0]);
    if (storage != info().out.dtype) return "the memory to write to is of " + std::string(dtype_name(storage));
    return refuse_post_ops(problem);
  }
  std::unique_ptr<const Prepared> prepare(const Problem& problem, const Tuning&,
                                          std::shared_ptr<const Packed>) const override {
    if (info().others[1].dtype == DType::int64) return std::make_unique<PreparedPut<int64_t>>(problem);
    return std::make_unique<PreparedPut<int32_t>>(problem);
  }
};

}  // namespace

void put_copy(RoutineList& list) {
  for (const DType ids : {DType::int64, DType::int32}) {
    for (const DType values :
         {DType::float32, DType::float16, DType::bfloat16, DType::int64, DType::int32, DType::boolean}) {
      list.add<PutCopy>(values, ids);
    }
  }
}

}  // namespace softneuro
