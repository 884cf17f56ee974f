#include <algorithm>
#include <cstring>

#include "layers/shared/moving.h"
#include "layers/take/take.h"

namespace softneuro {
namespace {

template <typename Id>
class PreparedTake final : public Prepared {
 public:
  explicit PreparedTake(const Problem& problem)
      : p_(take_params(*problem.layer, problem.in[0].shape)),
        axis_(static_cast<int>(problem.layer->attrs.integer("axis"))),
        threads_(problem.threads) {}

  void run(const RunArgs& args) const override {
    const TensorView &x = args.in[0], &ids = args.in[1], &out = args.out;
    const int64_t count = ids.shape.elements(), items = p_.outer * count;
    if (items == 0) return;
    const int64_t image = count / images(ids);
    // Axis 0 may have a stride of its own; it is this one where other axes come before the one that is taken of.
    const int64_t outer = axis_ == 0 ? 1 : std::max<int64_t>(p_.outer / x.shape[0], 1);
    // One index of axis 0 alone leaves the output the input's other axes, of which the first may be apart.
    if (axis_ == 0 && ids.shape.rank() == 0 && out.shape.rank() > 0) return run_one(args);
    const auto bytes = dtype_bytes(out.schema.dtype, p_.inner);
    const int64_t tasks = std::min(items, task_count(items * p_.inner, threads_));
    args.parallel_for(tasks, [&](int64_t task) {
      const Range part = split_range(items, tasks, task);
      for (int64_t item = part.begin; item < part.end; ++item) {
        const int64_t i = item / count, k = item % count;
        const int64_t id = static_cast<int64_t>(ids.as<Id>()[k / image * ids.strides[0] + k % image]);
        const int64_t index = p_.from_end && id < 0 ? id + p_.size : id;
        const bool exists = index >= 0 && index < p_.size;
        if (!exists) args.reject();
        const int64_t at = exists ? index : 0;
        const int64_t from =
            axis_ == 0 ? at * x.strides[0] : i / outer * x.strides[0] + (i % outer * p_.size + at) * p_.inner;
        std::memcpy(out.at(place(out, i / outer, i % outer, k, count, image)), x.at(from), bytes);
      }
    });
  }

 private:
  void run_one(const RunArgs& args) const {
    const TensorView &x = args.in[0], &out = args.out;
    const int64_t id = static_cast<int64_t>(*args.in[1].as<Id>()), index = p_.from_end && id < 0 ? id + p_.size : id;
    const bool exists = index >= 0 && index < p_.size;
    if (!exists) args.reject();
    const auto* from = static_cast<const std::byte*>(x.at((exists ? index : 0) * x.strides[0]));
    const size_t bytes = dtype_bytes(out.schema.dtype, out.image_elements());
    for (int64_t n = 0; n < out.shape[0]; ++n, from += bytes) std::memcpy(out.at(n * out.strides[0]), from, bytes);
  }
  // Where the output has what comes of index k, of the image n and of what lies between its axis 0 and the axis.
  int64_t place(const TensorView& out, int64_t n, int64_t rest, int64_t k, int64_t count, int64_t image) const {
    if (axis_ > 0) return n * out.strides[0] + (rest * count + k) * p_.inner;
    return k / image * out.strides[0] + k % image * p_.inner;
  }

  TakeParams p_;
  int axis_, threads_;
};

class TakeCopy final : public Routine {
 public:
  TakeCopy(DType values, DType ids)
      : Routine([&] {
          RoutineInfo info = moving_info("take", "copy", f32_nchw.with(values));
          info.others = {f32_nchw.with(ids)};
          return info;
        }()) {}

  Refusal check(const Problem& problem) const override { return refuse_post_ops(problem); }
  std::unique_ptr<const Prepared> prepare(const Problem& problem, const Tuning&,
                                          std::shared_ptr<const Packed>) const override {
    if (info().others[0].dtype == DType::int64) return std::make_unique<PreparedTake<int64_t>>(problem);
    return std::make_unique<PreparedTake<int32_t>>(problem);
  }
};

}  // namespace

void take_copy(RoutineList& list) {
  for (const DType ids : {DType::int64, DType::int32}) {
    for (const DType values : {DType::float32, DType::int64, DType::int32, DType::boolean}) {
      list.add<TakeCopy>(values, ids);
    }
  }
}

}  // namespace softneuro
