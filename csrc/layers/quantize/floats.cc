// Quantizes floats: each by itself, where it lies.
#include "layers/quantized/quantization.h"
#include "layers/shared/moving.h"

namespace softneuro {
namespace {

class QuantizeFloats final : public Routine {
 public:
  QuantizeFloats(Isa isa, const Layout& layout)
      : Routine([&] {
          RoutineInfo info = vector_info("quantize", "convert", isa, layout, layout);
          info.out.dtype = DType::qint8;
          return info;
        }()) {}

  Refusal check(const Problem& problem) const override {
    const PostOps& post = problem.layer->post;
    if (post.residual || post.activation.kind != ActivationKind::none) return "only quantizes";
    return {};
  }

  std::unique_ptr<const Prepared> prepare(const Problem& problem, const Tuning&,
                                          std::shared_ptr<const Packed>) const override {
    const auto kernel = quantize_kernels(info().isa)->to_bytes;
    return prepared_call([kernel, steps = quantize_steps(*problem.layer->post.quantize),
                          threads = problem.threads](const RunArgs& args) {
      for_runs(args.in[0], args.out, threads, args.parallel_for, [&](const void* src, void* dst, int64_t count) {
        kernel(steps, static_cast<const float*>(src), static_cast<uint8_t*>(dst), count);
      });
    });
  }
};

}  // namespace

void quantize_float_routines(RoutineList& list) {
  for (const Isa isa : isas_best_first()) {
    for (const Layout& layout : {Layout::nchw(), Layout::nhwc()}) list.add<QuantizeFloats>(isa, layout);
  }
}

}  // namespace softneuro
