// The value is packed in the blob's layout, so that no adapt runs again and again on what never changes.
#include "layers/moving.h"
#include "layers/packed_floats.h"

namespace softneuro {
namespace {

// Row-major values in another layout; `dst` is zeroed.
void pack_layout(const float* src, const Shape& shape, const Layout& layout, float* dst) {
  if (layout == Layout::nchw()) {
    std::copy_n(src, shape.elements(), dst);
    return;
  }
  const int64_t channels = shape[1], pixels = shape.product(2, shape.rank());
  const int64_t group = layout.is_blocked() ? layout.block : channels;
  for (int64_t n = 0; n < shape[0]; ++n) {
    float* image = dst + n * physical_elements(shape, layout) / shape[0];
    for (int64_t c = 0; c < channels; ++c) {
      for (int64_t pixel = 0; pixel < pixels; ++pixel) {
        image[(c / group * pixels + pixel) * group + c % group] = src[(n * channels + c) * pixels + pixel];
      }
    }
  }
}

class ConstantCopy final : public Routine {
 public:
  explicit ConstantCopy(const Layout& layout) : Routine(moving_info("constant", "copy", layout)) {}

  Refusal check(const Problem& problem) const override { return refuse_post_ops(problem); }

  std::shared_ptr<const Packed> pack(const Problem& problem, const Tuning&) const override {
    const Shape& shape = problem.out().shape;
    const int64_t elements = physical_elements(shape, info().out.layout);
    auto packed = std::make_shared<PackedFloats>(elements);
    std::fill_n(packed->data(), elements, 0.0f);
    const auto values = problem.layer->weight("value")->values();
    pack_layout(values.get(), shape, info().out.layout, packed->data());
    return packed;
  }

  std::unique_ptr<const Prepared> prepare(const Problem& problem, const Tuning&,
                                          std::shared_ptr<const Packed> packed) const override {
    return prepared_call([packed = std::move(packed), threads = problem.threads](const RunArgs& args) {
      float* values = static_cast<const PackedFloats*>(packed.get())->data();
      const TensorView src = dense_view(values, args.out.shape, args.out.schema);
      copy_blob(src, args.out, threads, args.parallel_for);
    });
  }
};

}  // namespace

void constant_copy_routines(RoutineList& list) {
  for (const Layout& layout : all_layouts()) list.add<ConstantCopy>(layout);
}

}  // namespace softneuro
