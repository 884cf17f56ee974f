// The value is packed in the blob's layout, so that no adapt runs again and again on what never changes.
#include "layers/shared/moving.h"
#include "layers/weights/in_layout.h"

namespace softneuro {
namespace {

class ConstantCopy final : public Routine {
 public:
  explicit ConstantCopy(const Layout& layout) : Routine(moving_info("constant", "copy", layout)) {}

  Refusal check(const Problem& problem) const override { return refuse_post_ops(problem); }

  Packing packing(const Problem& problem, const Tuning&) const override {
    Packing packing;
    add_in_layout(packing, "values", problem.out().shape, info().out.layout);
    return packing;
  }
  void pack(const Problem& problem, const Tuning&, Packed& to) const override {
    const auto values = problem.layer->weight("value")->values();
    pack_in_layout(values.get(), problem.out().shape, info().out.layout, to, "values");
  }

  std::unique_ptr<const Prepared> prepare(const Problem& problem, const Tuning&,
                                          std::shared_ptr<const Packed> packed) const override {
    return prepared_call([packed = std::move(packed), threads = problem.threads](const RunArgs& args) {
      auto* values = const_cast<float*>(packed->at<float>("values"));  // only read
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
