#include <cstring>

#include "layers/shared/moving.h"
#include "layers/upsample/upsample.h"

namespace softneuro {
namespace {

// A length known to the compiler makes the copy a few moves instead of a call.
template <int64_t unit>
void gather_fixed(const std::byte* src, const std::vector<UpsampleAxis::Tap>& taps, std::byte* dst) {
  for (const auto& tap : taps) {
    std::memcpy(dst, src + tap.first * unit, static_cast<size_t>(unit));
    dst += unit;
  }
}

// Output pixels of one row, `unit` bytes each.
void gather_row(const std::byte* src, const std::vector<UpsampleAxis::Tap>& taps, int64_t unit, std::byte* dst) {
  switch (unit) {
    case 1:
      return gather_fixed<1>(src, taps, dst);
    case 4:
      return gather_fixed<4>(src, taps, dst);
    case 16:
      return gather_fixed<16>(src, taps, dst);
    case 32:
      return gather_fixed<32>(src, taps, dst);
    case 64:
      return gather_fixed<64>(src, taps, dst);
    default:
      for (const auto& tap : taps) dst = std::copy_n(src + tap.first * unit, unit, dst);
  }
}

class UpsampleNearest final : public Routine {
 public:
  explicit UpsampleNearest(const Schema& schema) : Routine(moving_info("upsample", "nearest", schema)) {}

  Refusal check(const Problem& problem) const override {
    if (upsample_params(*problem.layer).bilinear) return "bilinear";
    return refuse_post_ops(problem);
  }

  std::unique_ptr<const Prepared> prepare(const Problem& problem, const Tuning&,
                                          std::shared_ptr<const Packed>) const override {
    const Shape& in = problem.in[0].shape;
    return prepared_call([rows = upsample_axis(*problem.layer, 0, in[2]),
                          cols = upsample_axis(*problem.layer, 1, in[3]),
                          threads = problem.threads](const RunArgs& args) { run(rows, cols, threads, args); });
  }

 private:
  static void run(const UpsampleAxis& rows, const UpsampleAxis& cols, int threads, const RunArgs& args) {
    const TensorView &in = args.in[0], &out = args.out;
    const Layout& layout = in.schema.layout;
    const int64_t unit = layout == Layout::nhwc() ? in.shape[1] : layout.block;
    const int64_t planes = layout == Layout::nhwc() ? 1 : (in.shape[1] + unit - 1) / unit;
    const auto bytes = static_cast<int64_t>(dtype_bytes(out.schema.dtype, 1));
    const int64_t row_in = in.shape[3] * unit, row_out = out.shape[3] * unit, height = out.shape[2];
    const int64_t items = images(out) * planes * height;
    const int64_t tasks = std::min(items, task_count(out.shape.elements(), threads));
    args.parallel_for(tasks, [&](int64_t task) {
      const Range part = split_range(items, tasks, task);
      for (int64_t item = part.begin; item < part.end; ++item) {
        const int64_t n = item / height / planes, plane = item / height % planes, y = item % height;
        const int64_t source = rows.taps[static_cast<size_t>(y)].first;
        auto* dst = static_cast<std::byte*>(out.at(n * out.strides[0] + (plane * height + y) * row_out));
        // Rows that repeat the one above are plain copies, if this task has made that one.
        if (item > part.begin && y > 0 && rows.taps[static_cast<size_t>(y - 1)].first == source) {
          std::copy_n(dst - row_out * bytes, row_out * bytes, dst);
        } else {
          const void* src = in.at(n * in.strides[0] + (plane * in.shape[2] + source) * row_in);
          gather_row(static_cast<const std::byte*>(src), cols.taps, unit * bytes, dst);
        }
      }
    });
  }
};

}  // namespace

void upsample_nearest_routines(RoutineList& list) {
  for (const Schema& schema : moved_schemas()) list.add<UpsampleNearest>(schema);
}

}  // namespace softneuro
