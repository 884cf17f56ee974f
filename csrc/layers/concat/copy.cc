#include "layers/shared/moving.h"

namespace softneuro {
namespace {

class ConcatCopy final : public Routine {
 public:
  explicit ConcatCopy(const Schema& schema) : Routine(moving_info("concat", "copy", schema)) {}

  Refusal check(const Problem& problem) const override {
    const Layout& layout = info().out.layout;
    if (layout.is_blocked() && axis_of(problem) == 1) {
      for (size_t i = 0; i + 1 < problem.in.size(); ++i) {
        if (problem.in[i].shape[1] % layout.block != 0) {
          return Refusal("input " + std::to_string(i) + "'s " + std::to_string(problem.in[i].shape[1]) +
                         " channels are not whole blocks");
        }
      }
    }
    return refuse_post_ops(problem);
  }

  std::unique_ptr<const Prepared> prepare(const Problem& problem, const Tuning&,
                                          std::shared_ptr<const Packed>) const override {
    return prepared_call([axis = axis_of(problem), count = problem.in.size(),
                          threads = problem.threads](const RunArgs& args) { run(axis, count, threads, args); });
  }

 private:
  static int axis_of(const Problem& problem) { return static_cast<int>(problem.layer->attrs.integer("axis")); }

  // Where input `x` goes, `before` elements or blocks of the axis after the output's start.
  static CopyJob job_of(const TensorView& x, const TensorView& out, int axis, int64_t before) {
    CopyJob job = copy_job(x, out);
    job.dims[0] = images(x);
    job.src_stride[0] = x.strides[0];
    job.dst_stride[0] = out.strides[0];
    if (axis == 0) {
      job.dst += before * out.strides[0] * job.bytes;
      job.length = x.image_elements();
      return job;
    }
    const AxisSplit from = split_axis(x.shape, out.schema.layout, axis);
    const AxisSplit to = split_axis(out.shape, out.schema.layout, axis);
    job.dims[2] = from.outer;
    job.length = job.src_stride[2] = from.size * from.inner;
    job.dst_stride[2] = to.size * to.inner;
    job.dst += before * to.inner * job.bytes;
    return job;
  }

  static void run(int axis, size_t count, int threads, const RunArgs& args) {
    const int64_t tasks = task_count(args.out.shape.elements(), threads);
    args.parallel_for(tasks, [&](int64_t task) {
      int64_t before = 0;
      for (size_t i = 0; i < count; ++i) {
        const TensorView& x = args.in[i];
        const CopyJob job = job_of(x, args.out, axis, before);
        before += axis == 0 ? images(x) : split_axis(x.shape, args.out.schema.layout, axis).size;
        if (job.src == job.dst) continue;  // its producer has written it in place
        const Range part = split_range(job.elements(), tasks, task);
        copy_part(job, part.begin, part.end);
      }
    });
  }
};

}  // namespace

void concat_copy_routines(RoutineList& list) {
  for (const Schema& schema : moved_schemas()) list.add<ConcatCopy>(schema);
  for (const Schema& schema : whole_schemas()) list.add<ConcatCopy>(schema);
}

}  // namespace softneuro
