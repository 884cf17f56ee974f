#include <algorithm>
#include <type_traits>

#include "layers/integer_binary/integer_binary.h"
#include "layers/shared/broadcast.h"
#include "layers/shared/moving.h"

namespace softneuro {
namespace {

template <typename T, typename Function>
void each(const RunArgs& args, int threads, const Function& f) {
  broadcast_two<T, T>(args.out, args.in[0], args.in[1], threads, args.parallel_for, f);
}

template <typename T>
void run(IntegerOp op, const RunArgs& args, int threads) {
  using U = std::make_unsigned_t<T>;  // which wraps around
  switch (op) {
    case IntegerOp::add:
      return each<T>(args, threads, [](T a, T b) { return static_cast<T>(static_cast<U>(a) + static_cast<U>(b)); });
    case IntegerOp::sub:
      return each<T>(args, threads, [](T a, T b) { return static_cast<T>(static_cast<U>(a) - static_cast<U>(b)); });
    case IntegerOp::mul:
      return each<T>(args, threads, [](T a, T b) { return static_cast<T>(static_cast<U>(a) * static_cast<U>(b)); });
    case IntegerOp::min:
      return each<T>(args, threads, [](T a, T b) { return std::min(a, b); });
    case IntegerOp::max:
      return each<T>(args, threads, [](T a, T b) { return std::max(a, b); });
  }
}

template <typename T>
class IntegerElements final : public Routine {
 public:
  IntegerElements() : Routine(moving_info("integer_binary", "elements", f32_nchw.with(dtype_of<T>))) {}

  Refusal check(const Problem& problem) const override { return refuse_post_ops(problem); }
  std::unique_ptr<const Prepared> prepare(const Problem& problem, const Tuning&,
                                          std::shared_ptr<const Packed>) const override {
    return prepared_call([op = integer_op(*problem.layer), threads = problem.threads](const RunArgs& args) {
      run<T>(op, args, threads);
    });
  }
};

}  // namespace

void integer_binary_elements(RoutineList& list) {
  list.add<IntegerElements<int64_t>>();
  list.add<IntegerElements<int32_t>>();
}

}  // namespace softneuro
