// Quantizes bytes: to steps of another size, or, after an activation, by a table.
#include "layers/quantized/lut.h"
#include "layers/quantized/quantization.h"
#include "layers/quantized/rescaling.h"
#include "layers/shared/moving.h"

namespace softneuro {
namespace {

class Requantize final : public Routine {
 public:
  Requantize(Isa isa, const Layout& layout)
      : Routine([&] {
          RoutineInfo info = bytes_info("quantize", "rescale", isa, layout);
          info.inplace_input = 0;
          return info;
        }()) {}

  Refusal check(const Problem& problem) const override {
    const PostOps& post = problem.layer->post;
    if (post.residual || post.activation.kind != ActivationKind::none) return "only quantizes";
    if (const Refusal refusal = check_unsigned(problem.in[0]); !refusal.accepted()) return refusal;
    return check_unsigned(problem.out());
  }

  std::unique_ptr<const Prepared> prepare(const Problem& problem, const Tuning&,
                                          std::shared_ptr<const Packed>) const override {
    const Rescaling rescaling(*problem.in[0].quantization, *problem.out().quantization, info().isa);
    return prepared_call([rescaling, threads = problem.threads](const RunArgs& args) {
      for_runs(args.in[0], args.out, threads, args.parallel_for,
               [&](const void* src, void* dst, int64_t count) { rescaling.run(src, dst, count); });
    });
  }
};

}  // namespace

void quantize_table_routines(RoutineList& list) {
  for (const Isa isa : isas_best_first()) {
    for (const Layout& layout : {Layout::nchw(), Layout::nhwc()}) list.add<Requantize>(isa, layout);
  }
  add_lut_routines(list, "quantize", [](const Layer&, double x) { return x; });
}

}  // namespace softneuro
