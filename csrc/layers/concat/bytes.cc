// Concatenates quantized blobs with parameters of their own: each is brought to the output's while it is copied.
#include "layers/quantized/quantization.h"
#include "layers/quantized/rescaling.h"
#include "layers/shared/moving.h"

namespace softneuro {
namespace {

class PreparedConcatBytes final : public Prepared {
 public:
  PreparedConcatBytes(const Problem& problem, Isa isa)
      : axis_(static_cast<int>(problem.layer->attrs.integer("axis"))), threads_(problem.threads) {
    for (const TensorDesc& desc : problem.in) {
      parts_.push_back(
          {same_quantization(desc, problem.out()), Rescaling(*desc.quantization, *problem.out().quantization, isa)});
    }
  }

  void run(const RunArgs& args) const override {
    const TensorView& out = args.out;
    const AxisSplit to = split_axis(out.shape, out.schema.layout, axis_);
    const int64_t rows = images(out) * to.outer, tasks = std::min(rows, task_count(out.shape.elements(), threads_));
    args.parallel_for(tasks, [&](int64_t task) {
      const Range share = split_range(rows, tasks, task);
      for (int64_t row = share.begin; row < share.end; ++row) {
        const int64_t n = row / to.outer, outer = row % to.outer;
        auto* dst = static_cast<uint8_t*>(out.at(n * out.strides[0] + outer * to.size * to.inner));
        for (size_t i = 0; i < parts_.size(); ++i) dst = put(args.in[i], parts_[i], n, outer, dst);
      }
    });
  }

 private:
  struct Part {
    bool same;
    Rescaling rescaling;
  };

  uint8_t* put(const TensorView& x, const Part& part, int64_t n, int64_t outer, uint8_t* dst) const {
    const AxisSplit from = split_axis(x.shape, x.schema.layout, axis_);
    const int64_t length = from.size * from.inner;
    const auto* src = static_cast<const uint8_t*>(x.at(n * x.strides[0] + outer * length));
    if (part.same) {
      std::copy_n(src, length, dst);
    } else {
      part.rescaling.run(src, dst, length);
    }
    return dst + length;
  }

  int axis_, threads_;
  std::vector<Part> parts_;
};

class ConcatBytes final : public Routine {
 public:
  ConcatBytes(Isa isa, const Layout& layout) : Routine(bytes_info("concat", "bytes", isa, layout)) {}

  Refusal check(const Problem& problem) const override {
    const PostOps& post = problem.layer->post;
    if (post.quantize == nullptr || post.activation.kind != ActivationKind::none) return "moves bytes alone";
    if (problem.layer->attrs.integer("axis") == 0) return "images are together";
    for (const TensorDesc& desc : problem.in) {
      if (const Refusal refusal = check_unsigned(desc); !refusal.accepted()) return refusal;
    }
    return check_unsigned(problem.out());
  }

  std::unique_ptr<const Prepared> prepare(const Problem& problem, const Tuning&,
                                          std::shared_ptr<const Packed>) const override {
    return std::make_unique<PreparedConcatBytes>(problem, info().isa);
  }
};

}  // namespace

void concat_bytes_routines(RoutineList& list) {
  for (const Isa isa : isas_best_first()) {
    for (const Layout& layout : {Layout::nchw(), Layout::nhwc()}) list.add<ConcatBytes>(isa, layout);
  }
}

}  // namespace softneuro
