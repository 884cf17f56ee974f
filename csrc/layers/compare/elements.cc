#include "layers/compare/compare.h"
#include "layers/shared/broadcast.h"
#include "layers/shared/moving.h"

namespace softneuro {
namespace {

// A truth value as the number that it is.
template <typename T>
T plain(T x) {
  return x;
}
uint8_t plain(Bool x) { return x.truth != 0 ? 1 : 0; }

template <typename T, Comparison comparison>
void compare(const RunArgs& args, int threads) {
  broadcast_two<Bool, T>(args.out, args.in[0], args.in[1], threads, args.parallel_for, [](T a, T b) {
    return Bool{static_cast<uint8_t>(holds(comparison, plain(a), plain(b)) ? 1 : 0)};
  });
}

template <typename T>
void compare(Comparison comparison, const RunArgs& args, int threads) {
  switch (comparison) {
    case Comparison::eq:
      return compare<T, Comparison::eq>(args, threads);
    case Comparison::ne:
      return compare<T, Comparison::ne>(args, threads);
    case Comparison::lt:
      return compare<T, Comparison::lt>(args, threads);
    case Comparison::le:
      return compare<T, Comparison::le>(args, threads);
    case Comparison::gt:
      return compare<T, Comparison::gt>(args, threads);
    case Comparison::ge:
      return compare<T, Comparison::ge>(args, threads);
  }
}

template <typename T>
class CompareElements final : public Routine {
 public:
  CompareElements()
      : Routine(moving_info("compare", "elements", f32_nchw.with(dtype_of<T>), f32_nchw.with(DType::boolean))) {}

  Schema input_schema(const Problem&, int) const override { return info().in; }
  Refusal check(const Problem& problem) const override { return refuse_post_ops(problem); }
  std::unique_ptr<const Prepared> prepare(const Problem& problem, const Tuning&,
                                          std::shared_ptr<const Packed>) const override {
    return prepared_call([comparison = comparison_of(*problem.layer), threads = problem.threads](const RunArgs& args) {
      compare<T>(comparison, args, threads);
    });
  }
};

}  // namespace

void compare_elements(RoutineList& list) {
  list.add<CompareElements<float>>();
  list.add<CompareElements<int64_t>>();
  list.add<CompareElements<int32_t>>();
  list.add<CompareElements<Bool>>();
}

}  // namespace softneuro
