#include "layers/convert.h"

#include <algorithm>

#include "kernels/convert/convert.h"
#include "layers/moving.h"

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

  Refusal check(const Problem& problem) const override { return refuse_post_ops(problem); }

  std::unique_ptr<const Prepared> prepare(const Problem& problem, const Tuning&,
                                          std::shared_ptr<const Packed>) const override {
    const ConvertKernel kernel = convert_kernel(info().isa, info().in.dtype, info().out.dtype);
    return prepared_call([kernel, threads = problem.threads](const RunArgs& args) { run(kernel, threads, args); });
  }

 private:
  static void run(ConvertKernel kernel, int threads, const RunArgs& args) {
    const TensorView &in = args.in[0], &out = args.out;
    const int64_t elements = out.shape.elements();
    // One run, or one per image.
    const int64_t length = in.dense() && out.dense() ? elements : out.image_elements();
    const int64_t tasks = task_count(elements, threads);
    args.parallel_for(tasks, [&](int64_t task) {
      const Range part = split_range(elements, tasks, task);
      for (int64_t at = part.begin; at < part.end;) {
        const int64_t image = at / length, offset = at % length, count = std::min(length - offset, part.end - at);
        kernel(in.at(image * in.strides[0] + offset), out.at(image * out.strides[0] + offset), count);
        at += count;
      }
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
