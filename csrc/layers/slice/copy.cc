#include "layers/shared/moving.h"
#include "layers/slice/slice.h"

namespace softneuro {
namespace {

class SliceCopy final : public Routine {
 public:
  explicit SliceCopy(const Schema& schema) : Routine(moving_info("slice", "copy", schema)) {}

  Refusal check(const Problem& problem) const override {
    const SliceParams p = slice_params(*problem.layer, problem.in[0].shape);
    const Layout& layout = info().in.layout;
    if (layout.is_blocked() && p.axis == 1) {
      if (p.step != 1) return "a step across channel blocks";
      if (p.start % layout.block != 0) return "begins within a channel block";
    }
    return refuse_post_ops(problem);
  }

  std::unique_ptr<const Prepared> prepare(const Problem& problem, const Tuning&,
                                          std::shared_ptr<const Packed>) const override {
    return prepared_call([p = slice_params(*problem.layer, problem.in[0].shape),
                          threads = problem.threads](const RunArgs& args) { run(p, threads, args); });
  }

 private:
  static void run(const SliceParams& p, int threads, const RunArgs& args) {
    const TensorView &in = args.in[0], &out = args.out;
    CopyJob job = copy_job(in, out);
    job.dims[0] = images(out);
    job.src_stride[0] = in.strides[0];
    job.dst_stride[0] = out.strides[0];
    if (p.axis == 0) {
      job.src += p.start * in.strides[0] * job.bytes;
      job.src_stride[0] *= p.step;
      job.length = out.image_elements();
    } else {
      const AxisSplit from = split_axis(in.shape, in.schema.layout, p.axis);
      const AxisSplit to = split_axis(out.shape, out.schema.layout, p.axis);
      job.src += p.start / from.unit * from.inner * job.bytes;
      job.dims[1] = to.outer;
      job.src_stride[1] = from.size * from.inner;
      job.dst_stride[1] = to.size * to.inner;
      const bool together = p.step == 1;
      job.dims[2] = together ? 1 : to.size;
      job.src_stride[2] = p.step * from.inner;
      job.dst_stride[2] = to.inner;
      job.length = together ? to.size * to.inner : to.inner;
      if (together && to.outer > 1) {  // many runs of one stride: the inner loop of the copy
        std::swap(job.dims[1], job.dims[2]);
        std::swap(job.src_stride[1], job.src_stride[2]);
        std::swap(job.dst_stride[1], job.dst_stride[2]);
      }
    }
    const int64_t tasks = task_count(job.elements(), threads);
    args.parallel_for(tasks, [&](int64_t task) {
      const Range part = split_range(job.elements(), tasks, task);
      copy_part(job, part.begin, part.end);
    });
    if (p.axis == 1) zero_padding_lanes(out);
  }
};

}  // namespace

void slice_copy_routines(RoutineList& list) {
  for (const Schema& schema : moved_schemas()) list.add<SliceCopy>(schema);
  for (const Schema& schema : whole_schemas()) list.add<SliceCopy>(schema);
}

}  // namespace softneuro
