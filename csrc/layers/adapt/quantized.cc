// Between the bytes of quantized blobs and the floats that they stand for. Floats are on the bytes' grid here.
#include "layers/quantized/quantization.h"
#include "layers/shared/moving.h"

namespace softneuro {
namespace {

class AdaptQuantized final : public Routine {
 public:
  AdaptQuantized(Isa isa, const Layout& layout, bool to_bytes)
      : Routine([&] {
          RoutineInfo info = vector_info("adapt", to_bytes ? "quantize" : "dequantize", isa, layout, layout);
          (to_bytes ? info.out : info.in).dtype = DType::qint8;
          return info;
        }()) {}

  Refusal check(const Problem& problem) const override {
    if (problem.out().quantization->axis >= 0) return "has a scale for each index of an axis";
    return refuse_post_ops(problem);
  }

  std::unique_ptr<const Prepared> prepare(const Problem& problem, const Tuning&,
                                          std::shared_ptr<const Packed>) const override {
    const QuantizeSteps steps = quantize_steps(*problem.out().quantization);
    const QuantizeKernels& kernels = *quantize_kernels(info().isa);
    const bool to_bytes = info().out.dtype == DType::qint8;
    return prepared_call([&kernels, to_bytes, steps, threads = problem.threads](const RunArgs& args) {
      for_runs(args.in[0], args.out, threads, args.parallel_for, [&](const void* src, void* dst, int64_t count) {
        if (to_bytes) return kernels.to_bytes(steps, static_cast<const float*>(src), static_cast<uint8_t*>(dst), count);
        kernels.to_floats(steps, static_cast<const uint8_t*>(src), static_cast<float*>(dst), count);
      });
    });
  }
};

}  // namespace

void adapt_quantized_routines(RoutineList& list) {
  for (const Isa isa : isas_best_first()) {
    for (const Layout& layout : {Layout::nchw(), Layout::nhwc()}) {
      for (const bool to_bytes : {false, true}) list.add<AdaptQuantized>(isa, layout, to_bytes);
    }
  }
}

}  // namespace softneuro
