// Conversions between row-major and channels-innermost layouts: a transpose of channels and pixels per image, or per
// channel block of an image.
#include "kernels/transpose2d/bytes.h"
#include "kernels/transpose2d/transpose2d.h"
#include "layers/shared/moving.h"

namespace softneuro {
namespace {

class AdaptTranspose final : public Routine {
 public:
  AdaptTranspose(Isa isa, const Layout& from, const Layout& to)
      : Routine(vector_info("adapt", "transpose", isa, from, to)) {}
  // Transposes bytes.
  AdaptTranspose(const Schema& from, const Schema& to) : Routine(moving_info("adapt", "transpose", from, to)) {}

  Refusal check(const Problem& problem) const override { return refuse_post_ops(problem); }

  std::unique_ptr<const Prepared> prepare(const Problem& problem, const Tuning&,
                                          std::shared_ptr<const Packed>) const override {
    return prepared_call([kernel = transpose2d_kernel(info().isa), threads = problem.threads](const RunArgs& args) {
      run(kernel, threads, args);
    });
  }

 private:
  static void run(Transpose2dKernel kernel, int threads, const RunArgs& args) {
    const TensorView &in = args.in[0], &out = args.out;
    const Shape& shape = out.shape;
    const bool to_pixels = in.schema.layout == Layout::nchw();  // channels become innermost
    const Layout& layout = to_pixels ? out.schema.layout : in.schema.layout;
    const int64_t channels = shape[1], pixels = shape.product(2, shape.rank());
    const int64_t group = layout.is_blocked() ? layout.block : channels;  // channels that are together in a pixel
    const int64_t groups = group == 0 ? 0 : (channels + group - 1) / group;
    // Chunks of pixels, so that one large image still is enough tasks; a multiple of every tile and cache line.
    constexpr int64_t chunk = 512;
    const int64_t chunks = (pixels + chunk - 1) / chunk;
    const int64_t items = images(out) * groups * chunks;

    const int64_t tasks = std::min(items, task_count(shape.elements(), threads));
    args.parallel_for(tasks, [&](int64_t task) {
      const Range part = split_range(items, tasks, task);
      for (int64_t item = part.begin; item < part.end; ++item) {
        const int64_t n = item / chunks / groups, g = item / chunks % groups, pixel = item % chunks * chunk;
        const int64_t count = std::min(chunk, pixels - pixel), used = std::min(group, channels - g * group);
        const int64_t in_rows = g * group * pixels + pixel;            // in the row-major blob
        const int64_t in_pixels = g * group * pixels + pixel * group;  // in the other
        const void* from = in.at(n * in.strides[0] + (to_pixels ? in_rows : in_pixels));
        void* to = out.at(n * out.strides[0] + (to_pixels ? in_pixels : in_rows));
        if (out.schema.dtype == DType::qint8) {
          transpose_bytes2d(static_cast<const uint8_t*>(from), to_pixels ? pixels : group, static_cast<uint8_t*>(to),
                            to_pixels ? group : pixels, to_pixels ? used : count, to_pixels ? count : used);
          continue;
        }
        const auto* src = static_cast<const float*>(from);
        auto* dst = static_cast<float*>(to);
        if (to_pixels) {
          kernel({src, pixels, dst, group, used, count, group});
        } else {
          kernel({src, group, dst, pixels, count, used, count});
        }
      }
    });
  }
};

}  // namespace

void adapt_transpose_routines(RoutineList& list) {
  for (Isa isa : isas_best_first()) {
    if (transpose2d_kernel(isa) == nullptr) continue;
    for (const Layout& layout : all_layouts()) {
      if (layout == Layout::nchw()) continue;
      list.add<AdaptTranspose>(isa, Layout::nchw(), layout);
      list.add<AdaptTranspose>(isa, layout, Layout::nchw());
    }
  }
  for (const Schema& from : moved_schemas()) {
    for (const Schema& to : moved_schemas()) {
      if (from.dtype == DType::qint8 && to.dtype == DType::qint8 && from != to) list.add<AdaptTranspose>(from, to);
    }
  }
}

}  // namespace softneuro
