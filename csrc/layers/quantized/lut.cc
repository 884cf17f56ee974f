#include "layers/quantized/lut.h"

#include "layers/quantized/quantization.h"
#include "layers/shared/moving.h"

namespace softneuro {
namespace {

class LutRoutine final : public Routine {
 public:
  LutRoutine(const char* layer_type, const Layout& layout, ByteFunction function)
      : Routine([&] {
          RoutineInfo info = moving_info(layer_type, "table", f32_nchw.with(DType::qint8).with(layout));
          info.inplace_input = 0;
          return info;
        }()),
        function_(function) {}

  Refusal check(const Problem& problem) const override {
    if (problem.layer->post.residual) return "takes no residual";
    if (problem.in.size() != 1) return "has two inputs";
    if (problem.layer->find_weight("other") != nullptr) return "each element has an operand of its own";
    return problem.in[0].shape == problem.out().shape ? Refusal() : Refusal("its shape changes");
  }

  std::unique_ptr<const Prepared> prepare(const Problem& problem, const Tuning&,
                                          std::shared_ptr<const Packed>) const override {
    const Layer& layer = *problem.layer;
    const Lut table = make_lut(*problem.in[0].quantization, *problem.out().quantization, [&](double x) {
      return reference_activation(layer.post.activation, function_(layer, x));
    });
    const LookUpKernel look_up = look_up_kernel(available_isas().front());
    return prepared_call([table, look_up, threads = problem.threads](const RunArgs& args) {
      for_runs(args.in[0], args.out, threads, args.parallel_for, [&](const void* src, void* dst, int64_t count) {
        look_up(table, static_cast<const uint8_t*>(src), static_cast<uint8_t*>(dst), count);
      });
    });
  }

 private:
  ByteFunction function_;
};

}  // namespace

void add_lut_routines(RoutineList& list, const char* layer_type, ByteFunction function) {
  for (const Layout& layout : {Layout::nchw(), Layout::nhwc()}) {
    list.add<LutRoutine>(layer_type, layout, function);
  }
}

}  // namespace softneuro
