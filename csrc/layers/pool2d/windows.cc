#include "layers/pool2d/windows.h"

#include <algorithm>

#include "base/lines.h"
#include "kernels/integers.h"
#include "layers/pool2d/pool2d.h"
#include "layers/quantized/quantization.h"
#include "layers/shared/moving.h"

namespace softneuro {
namespace {

// How a layout arranges one image for the kernels: `groups` planes of pixels, in each pixel `channels` side by side.
struct Planes {
  int64_t groups, channels, pixel, group_stride;
};

Planes plane_split(const Shape& shape, const Layout& layout, int64_t lane_groups) {
  const int64_t pixels = shape[2] * shape[3];
  switch (layout.kind) {
    case Layout::Kind::nchw:
      return {shape[1], 1, 1, pixels};
    case Layout::Kind::nhwc:
      return {lane_groups, shape[1], shape[1], 0};
    case Layout::Kind::blocked:
    case Layout::Kind::tiled:
      break;
  }
  return {(shape[1] + layout.block - 1) / layout.block, layout.block, layout.block, pixels * layout.block};
}

class PreparedPool final : public Prepared {
 public:
  PreparedPool(const Problem& problem, PoolWindows windows, PoolKernel kernel, const Schema& schema)
      : windows_(std::move(windows)),
        kernel_(kernel),
        line_(static_cast<int64_t>(line_bytes / dtype_bytes(schema.dtype, 1))) {
    const Layout& layout = schema.layout;
    const Shape &in = problem.in[0].shape, &out = problem.out().shape;
    if (schema.dtype == DType::qint8) set_steps(*problem.in[0].quantization, *problem.out().quantization);
    int64_t lane_groups = 1;
    if (layout == Layout::nhwc() && out[0] * out[2] < problem.threads) {
      // Too few rows of outputs to share out (a global pooling): parts of the channels, in whole cache lines.
      lane_groups = std::clamp<int64_t>(in[1] / line_, 1, problem.threads);
    }
    in_ = plane_split(in, layout, lane_groups);
    out_ = plane_split(out, layout, lane_groups);
    tasks_ = std::min(out[0] * out_.groups * out[2], task_count(in.elements() + out.elements(), problem.threads));
    if (layout == Layout::nchw()) scratch_ = whole_lines(in[3]);
    const auto is_empty = [](const PoolSpan& span) { return span.count == 0; };
    const auto& [is_max, rows, cols] = windows_;
    const bool any_empty = std::any_of(rows.spans.begin(), rows.spans.end(), is_empty) ||
                           std::any_of(cols.spans.begin(), cols.spans.end(), is_empty);
    if (is_max && any_empty && out_.group_stride != 0) unused_ = out_.groups * out_.channels - out[1];
  }

  WorkspaceSize workspace() const override {
    return {.task = static_cast<size_t>(scratch_) * sizeof(float), .tasks = tasks_};
  }

  void run(const RunArgs& args) const override {
    const TensorView &in = args.in[0], &out = args.out;
    const int64_t height = out.shape[2], items = out.shape[0] * out_.groups * height;
    args.parallel_for(tasks_, [&](int64_t task) {
      auto* scratch = reinterpret_cast<float*>(args.workspace.task(task));
      const Range part = split_range(items, tasks_, task);
      for (int64_t item = part.begin; item < part.end; ++item) {
        run_row(in, out, item / height / out_.groups, item / height % out_.groups, item % height, scratch);
      }
    });
  }

 private:
  void run_row(const TensorView& in, const TensorView& out, int64_t n, int64_t group, int64_t y, float* scratch) const {
    const PoolAxis &rows = windows_.rows, &cols = windows_.cols;
    const PoolSpan span = rows.spans[static_cast<size_t>(y)];
    const int64_t width = in.shape[3], out_width = out.shape[3];
    int64_t channels = out_.channels, in_channel = group * in_.group_stride, out_channel = group * out_.group_stride;
    if (in_.group_stride == 0) {
      const Range lines = split_range(ceil_div(channels, line_), out_.groups, group);
      in_channel = out_channel = lines.begin * line_;
      channels = std::min(channels, lines.end * line_) - in_channel;
    }
    const int64_t first = n * out.strides[0] + out_channel + y * out_width * out_.pixel;
    kernel_({.src = in.at(n * in.strides[0] + in_channel + span.begin * width * in_.pixel),
             .row_stride = rows.dilation * width * in_.pixel,
             .rows = span.count,
             .pixel = in_.pixel,
             .dilation = cols.dilation,
             .spans = cols.spans.data(),
             .outputs = out_width,
             .dst = out.at(first),
             .dst_pixel = out_.pixel,
             .channels = channels,
             .is_max = windows_.is_max,
             .scale = cols.scale.data(),
             .row_scale = rows.scale[static_cast<size_t>(y)],
             .step = cols.step,
             .inner_begin = cols.inner_begin,
             .inner_end = cols.inner_end,
             .formats = bytes_ ? &formats_ : nullptr,
             .width = width,
             .scratch = scratch});
    if (unused_ > 0 && group + 1 == out_.groups) clear_unused(out.f32() + first, span.count == 0);
  }

  // Means in steps of the output, so that a sum is scaled once.
  void set_steps(const Quantization& from, const Quantization& to) {
    bytes_ = true, formats_ = {quantized_format(from), quantized_format(to)};
    const double unit = static_cast<double>(from.scales[0]) / static_cast<double>(to.scales[0]);
    for (float& scale : windows_.rows.scale) scale = static_cast<float>(static_cast<double>(scale) * unit);
    formats_.from.scale = formats_.to.scale = 1;
  }

  // The maximum of nothing is minus infinity, in lanes that are no channels, too.
  void clear_unused(float* row, bool all) const {
    const std::vector<PoolSpan>& spans = windows_.cols.spans;
    for (size_t x = 0; x < spans.size(); ++x) {
      float* const end = row + static_cast<ptrdiff_t>(x + 1) * out_.pixel;
      if (all || spans[x].count == 0) std::fill(end - unused_, end, 0.0f);
    }
  }

  PoolWindows windows_;
  PoolKernel kernel_;
  int64_t line_;  // elements of a cache line
  bool bytes_ = false;
  PoolFormats formats_;
  Planes in_{}, out_{};
  int64_t tasks_ = 1, scratch_ = 0;
  int64_t unused_ = 0;  // lanes of the last block that need clearing
};

class PoolRoutine final : public Routine {
 public:
  PoolRoutine(const RoutineInfo& info, MakePoolWindows make) : Routine(info), make_(make) {}

  Refusal check(const Problem& problem) const override {
    const PostOps& post = problem.layer->post;
    if (info().in.dtype != DType::qint8) return post.empty() ? Refusal() : Refusal("takes no post-ops");
    if (post.residual || post.activation.kind != ActivationKind::none) return "takes no post-ops";
    for (const TensorDesc* desc : {&problem.in[0], &problem.out()}) {
      if (const Refusal refusal = check_unsigned(*desc); !refusal.accepted()) return refusal;
    }
    if (make_(problem).is_max) {
      return same_quantization(problem.in[0], problem.out()) ? Refusal() : "a maximum is one of its inputs";
    }
    const Shape& in = problem.in[0].shape;
    constexpr int64_t most = int64_t{1} << 23;
    return in[2] * in[3] < most ? Refusal() : Refusal("sums of so many bytes are not exact");
  }

  std::unique_ptr<const Prepared> prepare(const Problem& problem, const Tuning&,
                                          std::shared_ptr<const Packed>) const override {
    const PoolKernels kernels = pool_kernels(info().isa);
    const Schema& schema = info().out;
    return std::make_unique<PreparedPool>(problem, make_(problem),
                                          schema.layout == Layout::nchw() ? kernels.line : kernels.lanes, schema);
  }

 private:
  MakePoolWindows make_;
};

PoolAxis window_axis(const PoolGeometry& g, int64_t size, int64_t outputs, bool count_include_pad) {
  PoolAxis axis;
  axis.dilation = g.dilation;
  axis.step = g.stride;
  axis.inner_begin = axis.inner_end = outputs;
  for (int64_t i = 0; i < outputs; ++i) {
    const int64_t start = i * g.stride - g.before;
    // Taps [skipped, kernel) are not before the image; those past its end are cut off.
    const int64_t skipped = start < 0 ? (-start + g.dilation - 1) / g.dilation : 0;
    const int64_t begin = start + skipped * g.dilation;
    const int64_t room = begin < size ? (size - 1 - begin) / g.dilation + 1 : 0;
    const int64_t count = std::clamp<int64_t>(g.kernel - skipped, 0, room);
    axis.spans.push_back({count > 0 ? begin : 0, count});
    const int64_t padded = std::min(start + g.kernel, size + g.after) - start;
    const int64_t divisor = count_include_pad ? padded : count;
    axis.scale.push_back(count == 0 ? 0.0f : 1.0f / static_cast<float>(divisor));
    if (count == g.kernel) {
      axis.inner_begin = std::min(axis.inner_begin, i);
      axis.inner_end = i + 1;
    }
  }
  return axis;
}

}  // namespace

PoolWindows pool2d_windows(const Problem& problem) {
  const Pool2dParams p = pool2d_params(*problem.layer);
  const auto axis = [&](int i) {
    return window_axis(p.axes[static_cast<size_t>(i)], problem.in[0].shape[2 + i], problem.out().shape[2 + i],
                       p.count_include_pad);
  };
  return {p.is_max, axis(0), axis(1)};
}

void add_pool_routines(RoutineList& list, const char* type, MakePoolWindows make) {
  for (Isa isa : isas_best_first()) {
    if (pool_kernels(isa).lanes == nullptr) continue;
    list.add<PoolRoutine>(bytes_info(type, "lanes", isa, Layout::nhwc()), make);
    for (const Layout& layout : {Layout::blocked(isa_block(isa)), Layout::nhwc()}) {
      list.add<PoolRoutine>(vector_info(type, "lanes", isa, layout, layout), make);
    }
    list.add<PoolRoutine>(vector_info(type, "lines", isa, Layout::nchw(), Layout::nchw()), make);
  }
}

}  // namespace softneuro
