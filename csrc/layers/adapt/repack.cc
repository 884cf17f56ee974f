// Conversions between layouts that both keep a pixel's channels together: channels last and blocks of any width.
#include "kernels/repack/repack.h"
#include "layers/shared/moving.h"

namespace softneuro {
namespace {

// Where a pixel's channels are: `group` of them side by side, from one group of the same pixels to the next
// `pixels * group` elements.
struct Groups {
  int64_t group, groups;
};
Groups channel_groups(const Shape& shape, const Layout& layout) {
  const int64_t group = layout.is_blocked() ? layout.block : std::max<int64_t>(shape[1], 1);
  return {group, (shape[1] + group - 1) / group};
}

class AdaptRepack final : public Routine {
 public:
  AdaptRepack(Isa isa, const Layout& from, const Layout& to) : Routine(vector_info("adapt", "repack", isa, from, to)) {}

  Refusal check(const Problem& problem) const override { return refuse_post_ops(problem); }

  std::unique_ptr<const Prepared> prepare(const Problem& problem, const Tuning&,
                                          std::shared_ptr<const Packed>) const override {
    return prepared_call([kernel = repack_kernel(info().isa), threads = problem.threads](const RunArgs& args) {
      run(kernel, threads, args);
    });
  }

 private:
  static void run(RepackKernel kernel, int threads, const RunArgs& args) {
    const TensorView &in = args.in[0], &out = args.out;
    const Shape& shape = out.shape;
    const int64_t channels = shape[1], pixels = shape.product(2, shape.rank());
    const Groups from = channel_groups(shape, in.schema.layout), to = channel_groups(shape, out.schema.layout);
    // The narrower block is the unit of work; a wider destination's last block is filled up with units of zeros.
    const int64_t width = !in.schema.layout.is_blocked()    ? to.group
                          : !out.schema.layout.is_blocked() ? from.group
                                                            : std::min(from.group, to.group);
    const int64_t units = out.schema.layout.is_blocked() ? to.groups * to.group / width : from.groups;
    constexpr int64_t chunk = 256;
    const int64_t chunks = (pixels + chunk - 1) / chunk;
    const int64_t items = images(out) * chunks;

    const int64_t tasks = std::min(items * units, task_count(shape.elements(), threads));
    args.parallel_for(tasks, [&](int64_t task) {
      const Range part = split_range(items * units, tasks, task);
      for (int64_t item = part.begin; item < part.end; ++item) {
        const int64_t n = item / units / chunks, pixel = item / units % chunks * chunk, channel = item % units * width;
        const int64_t used = std::clamp<int64_t>(channels - channel, 0, width);
        const auto at = [&](const Groups& g) {
          return channel / g.group * pixels * g.group + pixel * g.group + channel % g.group;
        };
        kernel({in.f32() + n * in.strides[0] + (used > 0 ? at(from) : 0), from.group,
                out.f32() + n * out.strides[0] + at(to), to.group, std::min(chunk, pixels - pixel),
                static_cast<int>(used),
                static_cast<int>(out.schema.layout.is_blocked() ? width : std::min(width, channels - channel))});
      }
    });
  }
};

}  // namespace

void adapt_repack_routines(RoutineList& list) {
  for (Isa isa : isas_best_first()) {
    if (repack_kernel(isa) == nullptr) continue;
    for (const Layout& from : all_layouts()) {
      for (const Layout& to : all_layouts()) {
        if (from == to || from == Layout::nchw() || to == Layout::nchw()) continue;
        list.add<AdaptRepack>(isa, from, to);
      }
    }
  }
}

}  // namespace softneuro
