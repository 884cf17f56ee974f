#include "layers/contract/naive.h"

#include <algorithm>
#include <span>
#include <string>

namespace softneuro {
namespace {

int64_t elements(std::span<const TensorDesc> in, std::span<const TensorDesc> outs) {
  int64_t total = 0;
  for (const auto& descs : {in, outs}) {
    for (const TensorDesc& desc : descs) total += desc.shape.elements();
  }
  return total;
}

// References own their weights' copies while they run, so this is the one routine whose run() allocates. It is a
// fallback for problems that no other routine accepts, and a second witness in tests.
class PreparedNaive final : public Prepared {
 public:
  PreparedNaive(const LayerDef& def, const Problem& problem)
      : def_(def), layer_(*problem.layer), in_(problem.in), outs_(problem.outs) {}

  WorkspaceSize workspace() const override {
    return {.shared = static_cast<size_t>(elements(in_, outs_)) * sizeof(double)};
  }

  void run(const RunArgs& args) const override {
    auto* memory = reinterpret_cast<double*>(args.workspace.shared());
    std::vector<RefTensor> in;
    for (size_t i = 0; i < in_.size(); ++i) {
      in.push_back({in_[i].shape, memory});
      memory = gather(args.in[i], memory);
    }
    std::vector<RefTensor> outs;
    for (const TensorDesc& desc : outs_) {
      outs.push_back({desc.shape, memory});
      memory += desc.shape.elements();
    }
    run_reference(def_, layer_, in, outs);
    for (size_t k = 0; k < outs.size(); ++k) scatter(outs[k], args.outs[k]);
  }

 private:
  static double* gather(const TensorView& view, double* to) {
    const int64_t images = view.shape.rank() == 0 ? 1 : view.shape[0], size = view.image_elements();
    for (int64_t n = 0; n < images; ++n) {
      to = std::copy_n(view.f32() + n * view.strides[0], size, to);
    }
    return to;
  }

  static void scatter(const RefTensor& from, const TensorView& view) {
    const int64_t images = view.shape.rank() == 0 ? 1 : view.shape[0], size = view.image_elements();
    for (int64_t n = 0; n < images; ++n) {
      std::transform(from.data + n * size, from.data + (n + 1) * size, view.f32() + n * view.strides[0],
                     [](double value) { return static_cast<float>(value); });
    }
  }

  const LayerDef& def_;
  Layer layer_;  // constants are shared, not copied
  std::vector<TensorDesc> in_;
  OutputDescs outs_;
};

class Naive final : public Routine {
 public:
  explicit Naive(const LayerDef& def)
      : Routine({.layer_type = def.type,
                 .algorithm = "naive",
                 .isa = Isa::scalar,
                 .isa_in_name = false,
                 .in = f32_nchw,
                 .out = f32_nchw,
                 .fallback = true}),
        def_(def) {}

  // Half a gigabyte in float64. A host does better than this loop with more, and has less memory left.
  Refusal check(const Problem& problem) const override {
    constexpr int64_t most = int64_t{1} << 26;
    const int64_t total = elements(problem.in, problem.outs);
    return total <= most ? Refusal() : Refusal(std::to_string(total) + " elements are too many in float64");
  }
  std::unique_ptr<const Prepared> prepare(const Problem& problem, const Tuning&,
                                          std::shared_ptr<const Packed>) const override {
    return std::make_unique<PreparedNaive>(def_, problem);
  }

 private:
  const LayerDef& def_;
};

}  // namespace

std::unique_ptr<Routine> make_naive_routine(const LayerDef& def) { return std::make_unique<Naive>(def); }

}  // namespace softneuro
