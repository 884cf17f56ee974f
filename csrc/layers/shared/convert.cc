#include "layers/shared/convert.h"

#include "kernels/convert/convert.h"
#include "layers/shared/moving.h"

namespace softneuro {
namespace {

class Convert final : public Routine {
 public:
  Convert(const char* layer_type, Isa isa, const Layout& layout, DType from, DType to)
      : Routine([&] {
          RoutineInfo info = vector_info(layer_type, "convert", isa, layout, layout);
          info.in.dtype = from;
          info.out.dtype = to;
          return info;
        }()) {}

  Refusal check(const Problem& problem) const override {
    const bool is_cast = info().layer_type != "adapt";
    if (is_cast && problem.out().kind != ValueKind::real) return "it is not to reals";
    return refuse_post_ops(problem);
  }

  std::unique_ptr<const Prepared> prepare(const Problem& problem, const Tuning&,
                                          std::shared_ptr<const Packed>) const override {
    const ConvertKernel kernel = convert_kernel(info().isa, info().in.dtype, info().out.dtype);
    return prepared_call([kernel, threads = problem.threads](const RunArgs& args) {
      for_runs(args.in[0], args.out, threads, args.parallel_for, kernel);
    });
  }
};

}  // namespace

void add_convert_routines(RoutineList& list, const char* layer_type, DType from, DType to) {
  for (const Isa isa : isas_best_first()) {
    if (convert_kernel(isa, from, to) == nullptr) continue;
    for (const Layout& layout : {Layout::nchw(), Layout::nhwc()}) {
      list.add<Convert>(layer_type, isa, layout, from, to);
    }
  }
}

}  // namespace softneuro
