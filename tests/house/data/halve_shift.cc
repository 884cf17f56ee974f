// By a shift, where values are fixed point.
#include "layers/contract/routine.h"

namespace softneuro {
namespace {

class PreparedShift final : public Prepared {
 public:
  explicit PreparedShift(int64_t count) : count_(count) {}
  void run(const RunArgs& args) const override {
    for (int64_t i = 0; i < count_; ++i) {
      const auto half = static_cast<int16_t>(args.in[0].as<Fixed16>()[i].bits >> 1);
      args.outs[0].as<Fixed16>()[i] = {half};
      args.outs[1].as<Fixed16>()[i] = {static_cast<int16_t>(-half)};
    }
  }

 private:
  int64_t count_;
};

class HalveShift final : public Routine {
 public:
  HalveShift()
      : Routine({.layer_type = "halve",
                 .algorithm = "shift",
                 .isa_in_name = false,
                 .in = f32_nchw.with(DType::fixed16),
                 .out = f32_nchw.with(DType::fixed16),
                 .error = ErrorClass::rounded}) {}

  Refusal check(const Problem& problem) const override {
    return problem.layer->post.empty() ? Refusal() : Refusal("absorbs nothing");
  }
  double expected_error(const Problem&, const Tuning&) const override { return 0.002; }
  std::unique_ptr<const Prepared> prepare(const Problem& problem, const Tuning&,
                                          std::shared_ptr<const Packed>) const override {
    return std::make_unique<PreparedShift>(problem.out().shape.elements());
  }
};

}  // namespace

void halve_shift(RoutineList& list) { list.add<HalveShift>(); }

}  // namespace softneuro
