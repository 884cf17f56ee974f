#include "layers/pad/pad.h"
#include "layers/shared/moving.h"

namespace softneuro {
namespace {

// A blob as its layout holds it: nested axes, and `unit` elements in each innermost index.
struct Nest {
  std::vector<int> axes;      // logical, outermost first
  std::vector<int64_t> size;  // of each, in channel blocks where the axis is the blocked one
  int64_t unit = 1;
};

Nest nest_of(const Shape& shape, const Layout& layout) {
  Nest nest;
  const auto add = [&](int axis, int64_t size) {
    nest.axes.push_back(axis);
    nest.size.push_back(size);
  };
  const int rank = shape.rank();
  for (int axis = 0; axis < rank; ++axis) {
    if (axis != 1 || layout == Layout::nchw()) add(axis, shape[axis]);
    if (axis == 1 && layout.is_blocked()) add(axis, (shape[1] + layout.block - 1) / layout.block);
  }
  if (layout == Layout::nhwc()) add(1, shape[1]);
  if (layout.is_blocked()) nest.unit = layout.block;
  return nest;
}

// Rows along one axis are copied in segments; the axes around it are loops over tables of source indices.
class PreparedPad final : public Prepared {
 public:
  PreparedPad(const Problem& problem, const Layout& layout) : threads_(problem.threads) {
    const PadParams p = pad_params(*problem.layer, problem.in[0].shape);
    value_ = p.value;
    if (problem.in[0].quantization != nullptr) zero_ = static_cast<uint8_t>(problem.in[0].quantization->zero_points[0]);
    Nest in = nest_of(problem.in[0].shape, layout), out = nest_of(problem.out().shape, layout);
    unit_ = in.unit;
    const auto padded = [&](int axis) {
      return p.before[static_cast<size_t>(axis)] != 0 || p.after[static_cast<size_t>(axis)] != 0;
    };
    // Innermost axes without padding are part of the unit; axis 0 is not, as its stride is only known when run.
    while (in.axes.size() > 1 && !padded(in.axes.back())) {
      unit_ *= in.size.back();
      for (Nest* nest : {&in, &out}) {
        nest->axes.pop_back();
        nest->size.pop_back();
      }
    }
    for (size_t i = 0; i < in.axes.size(); ++i) {
      const int64_t before = p.before[static_cast<size_t>(in.axes[i])];
      std::vector<int64_t> sources;
      for (int64_t o = 0; o < out.size[i]; ++o) sources.push_back(pad_source(p.mode, o - before, in.size[i]));
      if (i > 0 && i + 1 == in.axes.size()) {
        row_in_ = in.size[i];
        row_out_ = out.size[i];
        add_segments(sources);
      } else {
        loops_.push_back({in.size[i], std::move(sources)});
      }
    }
    if (in.axes.size() < 2) add_segments({0});  // a row of one unit
    for (const Loop& loop : loops_) rows_ *= static_cast<int64_t>(loop.sources.size());
  }

  void run(const RunArgs& args) const override {
    const TensorView &in = args.in[0], &out = args.out;
    const bool bytes = out.schema.dtype == DType::qint8;
    const int64_t tasks = std::min(rows_, task_count(out.shape.elements(), threads_));
    args.parallel_for(tasks, [&](int64_t task) {
      const Range part = split_range(rows_, tasks, task);
      for (int64_t row = part.begin; row < part.end; ++row) {
        bytes ? run_row(in, out, row, QInt8{zero_}) : run_row(in, out, row, value_);
      }
    });
    if (value_ != 0 && out.schema.layout.is_blocked()) zero_padding_lanes(out);
  }

 private:
  struct Loop {
    int64_t in_size;
    std::vector<int64_t> sources;
  };
  struct Segment {
    int64_t source, count;  // source -1: the constant
  };

  void add_segments(const std::vector<int64_t>& sources) {
    for (int64_t source : sources) {
      if (!row_.empty()) {
        Segment& last = row_.back();
        const int64_t next = last.source < 0 ? -1 : last.source + last.count;
        if (source == next) {
          ++last.count;
          continue;
        }
      }
      row_.push_back({source, 1});
    }
  }

  template <typename T>
  void run_row(const TensorView& in, const TensorView& out, int64_t row, T value) const {
    // Loops inside out; the outermost is axis 0 of a blob of rank 1 or more.
    int64_t position = row, from = 0, to = 0, in_stride = row_in_ * unit_, out_stride = row_out_ * unit_;
    bool inside = true;
    for (size_t i = loops_.size(); i-- > 0;) {
      const Loop& loop = loops_[i];
      const auto size = static_cast<int64_t>(loop.sources.size());
      const int64_t index = position % size, source = loop.sources[static_cast<size_t>(index)];
      position /= size;
      inside = inside && source >= 0;
      from += source * (i == 0 ? in.strides[0] : in_stride);
      to += index * (i == 0 ? out.strides[0] : out_stride);
      in_stride *= loop.in_size;
      out_stride *= size;
    }
    T* dst = out.as<T>() + to;
    if (!inside) {
      std::fill_n(dst, row_out_ * unit_, value);
      return;
    }
    for (const Segment& segment : row_) {
      if (segment.source < 0) {
        std::fill_n(dst, segment.count * unit_, value);
      } else {
        std::copy_n(in.as<T>() + from + segment.source * unit_, segment.count * unit_, dst);
      }
      dst += segment.count * unit_;
    }
  }

  int threads_;
  float value_;
  uint8_t zero_ = 0;  // of bytes the value zero
  int64_t unit_, row_in_ = 1, row_out_ = 1, rows_ = 1;
  std::vector<Loop> loops_;
  std::vector<Segment> row_;
};

class PadCopy final : public Routine {
 public:
  explicit PadCopy(const Schema& schema) : Routine(moving_info("pad", "copy", schema)) {}

  Refusal check(const Problem& problem) const override {
    const Shape& in = problem.in[0].shape;
    if (info().in.layout.is_blocked()) {
      const PadParams p = pad_params(*problem.layer, in);
      if (p.before[1] != 0 || p.after[1] != 0) return "pads the blocked channels";
    }
    return refuse_post_ops(problem);
  }

  std::unique_ptr<const Prepared> prepare(const Problem& problem, const Tuning&,
                                          std::shared_ptr<const Packed>) const override {
    return std::make_unique<PreparedPad>(problem, info().out.layout);
  }
};

}  // namespace

void pad_copy_routines(RoutineList& list) {
  for (const Schema& schema : moved_schemas()) list.add<PadCopy>(schema);
}

}  // namespace softneuro
