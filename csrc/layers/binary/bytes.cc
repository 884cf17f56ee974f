// Sums, differences and products of two quantized blobs: of equal shapes, or the second of one value for each channel.
#include "kernels/elementwise/elementwise.h"
#include "layers/binary/binary.h"
#include "layers/quantized/lut.h"
#include "layers/quantized/quantization.h"
#include "layers/shared/moving.h"

namespace softneuro {
namespace {

// How two operands meet, the larger one first.
struct Operands {
  bool fit = false, swapped = false, per_channel = false;
};

Operands operands_of(const BinaryParams& p) {
  if (p.left == p.right) return {.fit = true};
  const auto per_channel = [&](const Shape& large, const Shape& small) {
    return large == p.out && large.rank() >= 3 && small.rank() == large.rank() && small[0] == large[0] &&
           small[1] == large[1] && small.product(2, small.rank()) == 1;
  };
  if (per_channel(p.left, p.right)) return {true, false, true};
  if (per_channel(p.right, p.left)) return {true, true, true};
  return {};
}

// In steps of the output.
ElementwiseFormats formats_of(const Problem& problem, ElementwiseOp function, bool swapped) {
  const Quantization &left = *problem.in[swapped ? 1 : 0].quantization,
                     &right = *problem.in[swapped ? 0 : 1].quantization, &to = *problem.out().quantization;
  ElementwiseFormats formats{quantized_format(to), quantized_format(left), quantized_format(right)};
  const double unit = static_cast<double>(to.scales[0]);
  const double a = static_cast<double>(left.scales[0]), b = static_cast<double>(right.scales[0]);
  formats.dst.scale = 1;
  if (function == ElementwiseOp::mul) {
    formats.a.scale = static_cast<float>(a * b / unit), formats.b.scale = 1;
    return formats;
  }
  const bool minus = function == ElementwiseOp::sub;
  formats.a.scale = static_cast<float>((minus && swapped ? -a : a) / unit);
  formats.b.scale = static_cast<float>((minus && !swapped ? -b : b) / unit);
  return formats;
}

class PreparedBytes final : public Prepared {
 public:
  PreparedBytes(const Problem& problem, Isa isa, const Layout& layout)
      : threads_(problem.threads), channels_last_(layout == Layout::nhwc()), bounds_(*byte_bounds(problem)) {
    const BinaryParams p = binary_params(*problem.layer, problem.in);
    operands_ = operands_of(p);
    formats_ = formats_of(problem, p.function, operands_.swapped);
    const ElementwiseOp op = p.function == ElementwiseOp::mul ? ElementwiseOp::mul : ElementwiseOp::add;
    const bool one = operands_.per_channel && !channels_last_;
    kernel_ = elementwise_kernel(isa, op, Access::full, one ? Access::scalar : Access::full);
  }

  void run(const RunArgs& args) const override {
    const TensorView &a = args.in[operands_.swapped ? 1 : 0], &b = args.in[operands_.swapped ? 0 : 1];
    const TensorView& out = args.out;
    const int64_t images = out.shape.rank() == 0 ? 1 : out.shape[0], size = out.image_elements();
    const auto start = [](const TensorView& view, int64_t n) {
      return view.shape.rank() == 0 ? 0 : n * view.strides[0];
    };
    if (!operands_.per_channel) {
      const int64_t parts =
          std::max<int64_t>(task_count(out.shape.elements(), threads_) / std::max<int64_t>(images, 1), 1);
      args.parallel_for(images * parts, [&](int64_t item) {
        const int64_t n = item / parts;
        const Range part = split_range(size, parts, item % parts);
        call(out.at(start(out, n) + part.begin), a.at(start(a, n) + part.begin), b.at(start(b, n) + part.begin),
             part.end - part.begin);
      });
      return;
    }
    // Rows that meet one row of the second, or one value of it.
    const int64_t channels = out.shape[1], pixels = size / std::max<int64_t>(channels, 1);
    const int64_t rows = channels_last_ ? pixels : channels, length = channels_last_ ? channels : pixels;
    const int64_t tasks = std::min(images * rows, task_count(out.shape.elements(), threads_));
    args.parallel_for(tasks, [&](int64_t task) {
      const Range part = split_range(images * rows, tasks, task);
      for (int64_t item = part.begin; item < part.end; ++item) {
        const int64_t n = item / rows, row = item % rows;
        call(out.at(start(out, n) + row * length), a.at(start(a, n) + row * length),
             b.at(start(b, n) + (channels_last_ ? 0 : row)), length);
      }
    });
  }

 private:
  void call(void* dst, const void* a, const void* b, int64_t count) const {
    kernel_({dst, a, b, nullptr, 1, count, 0, 0, 0, bounds_.least, bounds_.most, &formats_});
  }

  int threads_;
  bool channels_last_;
  ByteBounds bounds_;  // of steps
  Operands operands_;
  ElementwiseFormats formats_;
  ElementwiseKernel kernel_;
};

class BinaryBytes final : public Routine {
 public:
  BinaryBytes(Isa isa, const Layout& layout) : Routine(bytes_info("binary", "bytes", isa, layout)) {}

  Refusal check(const Problem& problem) const override {
    if (problem.layer->post.residual) return "takes no residual";
    if (problem.in.size() != 2) return "has a constant operand";
    for (const TensorDesc* desc : {&problem.in[0], &problem.in[1], &problem.out()}) {
      if (const Refusal refusal = check_unsigned(*desc); !refusal.accepted()) return refusal;
    }
    const BinaryParams p = binary_params(*problem.layer, problem.in);
    const ElementwiseOp f = p.function;
    if (f != ElementwiseOp::add && f != ElementwiseOp::sub && f != ElementwiseOp::mul)
      return "its function needs reals";
    if (!byte_bounds(problem)) return "its activation needs reals";
    return operands_of(p).fit ? Refusal() : Refusal("its operands are broadcast");
  }

  std::unique_ptr<const Prepared> prepare(const Problem& problem, const Tuning&,
                                          std::shared_ptr<const Packed>) const override {
    return std::make_unique<PreparedBytes>(problem, info().isa, info().out.layout);
  }
};

// Gives what the layer makes of one input and a number.
double with_scalar(const Layer& layer, double x) {
  double result = 0;
  const Shape one{1};
  Layer alone = layer;
  alone.post = {};
  const RefTensor in{one, &x};
  binary_reference(alone, {&in, 1}, {one, &result});
  return result;
}

}  // namespace

void binary_bytes(RoutineList& list) {
  for (const Isa isa : isas_best_first()) {
    for (const Layout& layout : {Layout::nchw(), Layout::nhwc()}) list.add<BinaryBytes>(isa, layout);
  }
  add_lut_routines(list, "binary", with_scalar);
}

}  // namespace softneuro
