// Rows of floats, each brought to bytes and back a cache line's worth at a time.
#include <algorithm>
#include <array>

#include "layers/contract/routine.h"
#include "layers/dynamic_quantize/dynamic_quantize.h"
#include "layers/shared/grid.h"

namespace softneuro {
namespace {

class PreparedFloats final : public Prepared {
 public:
  PreparedFloats(const Problem& problem, Isa isa)
      : p_(dynamic_quantize_params(*problem.layer, problem.in[0].shape)),
        range_(dynamic_rows_kernels(isa)->range),
        kernels_(*quantize_kernels(isa)) {
    const Shape& shape = problem.in[0].shape;
    image_ = shape.rank() == 0 ? 1 : shape.product(1, shape.rank());
    tasks_ = std::min<int64_t>(std::max<int64_t>(p_.rows, 1), task_count(p_.rows * p_.c, problem.threads));
  }

  void run(const RunArgs& args) const override {
    args.parallel_for(tasks_, [&](int64_t task) {
      const Range rows = split_range(p_.rows, tasks_, task);
      for (int64_t row = rows.begin; row < rows.end; ++row) do_row(args, row);
    });
  }

 private:
  // Calls body(src, dst, count) for a row's elements that lie side by side in both.
  template <typename Body>
  void for_parts(const RunArgs& args, int64_t row, const Body& body) const {
    const TensorView &x = args.in[0], &steps = args.out;
    const int64_t length = x.dense() && steps.dense() ? p_.rows * p_.c : image_;
    for (int64_t at = row * p_.c; at < (row + 1) * p_.c;) {
      const int64_t image = at / length, offset = at % length;
      const int64_t count = std::min(length - offset, (row + 1) * p_.c - at);
      const auto in_memory = [&](const TensorView& view) {
        return view.f32() + (view.shape.rank() == 0 ? 0 : image * view.strides[0]) + offset;
      };
      body(in_memory(x), in_memory(steps), count);
      at += count;
    }
  }

  void do_row(const RunArgs& args, int64_t row) const {
    FloatRange range{0, 0};
    for_parts(args, row, [&](const float* src, float*, int64_t count) { include(range, range_(src, count)); });
    const QuantizeSteps steps = p_.steps(range);
    const QuantizeSteps whole{.zero = steps.zero, .least = steps.least, .most = steps.most};  // of scale 1
    for_parts(args, row, [&](const float* src, float* dst, int64_t count) {
      std::array<uint8_t, 4096> bytes;
      for (int64_t begin = 0; begin < count; begin += static_cast<int64_t>(bytes.size())) {
        const int64_t n = std::min(count - begin, static_cast<int64_t>(bytes.size()));
        kernels_.to_bytes(steps, src + begin, bytes.data(), n);
        kernels_.to_floats(whole, bytes.data(), dst + begin, n);
      }
    });
    put(args.outs[1], row, steps.scale);
    put(args.outs[2], row, static_cast<float>(steps.zero));
  }

  // One number for each row, of which an image has as many as there are elements in it.
  static void put(const TensorView& view, int64_t row, float value) {
    const int64_t images = view.shape.rank() == 0 ? 1 : view.shape[0];
    const int64_t per_image = std::max<int64_t>(view.shape.elements() / std::max<int64_t>(images, 1), 1);
    const int64_t image_stride = view.shape.rank() == 0 ? 0 : view.strides[0];
    view.f32()[row / per_image * image_stride + row % per_image] = value;
  }

  DynamicQuantizeParams p_;
  decltype(DynamicRowsKernels::range) range_;
  const QuantizeKernels& kernels_;
  int64_t image_ = 1, tasks_ = 1;
};

class DynamicQuantizeFloats final : public Routine {
 public:
  explicit DynamicQuantizeFloats(Isa isa)
      : Routine(
            {.layer_type = "dynamic_quantize", .algorithm = "floats", .isa = isa, .in = f32_nchw, .out = f32_nchw}) {}

  Refusal check(const Problem& problem) const override {
    return problem.layer->post.empty() ? Refusal() : Refusal("takes no post-ops");
  }

  std::unique_ptr<const Prepared> prepare(const Problem& problem, const Tuning&,
                                          std::shared_ptr<const Packed>) const override {
    return std::make_unique<PreparedFloats>(problem, info().isa);
  }
};

}  // namespace

void dynamic_quantize_floats(RoutineList& list) {
  for (const Isa isa : isas_best_first()) list.add<DynamicQuantizeFloats>(isa);
}

}  // namespace softneuro
