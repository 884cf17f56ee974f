#include "layers/logical/logical.h"
#include "layers/shared/broadcast.h"
#include "layers/shared/moving.h"

namespace softneuro {
namespace {

template <LogicalOp op>
void run(const RunArgs& args, int threads, int second) {
  broadcast_two<Bool, Bool>(args.out, args.in[0], args.in[second], threads, args.parallel_for, [](Bool a, Bool b) {
    return Bool{static_cast<uint8_t>(holds(op, a.truth != 0, b.truth != 0) ? 1 : 0)};
  });
}

class LogicalElements final : public Routine {
 public:
  LogicalElements() : Routine(moving_info("logical", "elements", f32_nchw.with(DType::boolean))) {}

  Refusal check(const Problem& problem) const override { return refuse_post_ops(problem); }
  std::unique_ptr<const Prepared> prepare(const Problem& problem, const Tuning&,
                                          std::shared_ptr<const Packed>) const override {
    return prepared_call([op = logical_op(*problem.layer), threads = problem.threads](const RunArgs& args) {
      switch (op) {
        case LogicalOp::both:
          return run<LogicalOp::both>(args, threads, 1);
        case LogicalOp::either:
          return run<LogicalOp::either>(args, threads, 1);
        case LogicalOp::one_of:
          return run<LogicalOp::one_of>(args, threads, 1);
        case LogicalOp::opposite:
          return run<LogicalOp::opposite>(args, threads, 0);
      }
    });
  }
};

}  // namespace

void logical_elements(RoutineList& list) { list.add<LogicalElements>(); }

}  // namespace softneuro
