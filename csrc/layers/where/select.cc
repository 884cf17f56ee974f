#include "layers/shared/broadcast.h"
#include "layers/shared/moving.h"
#include "layers/where/where.h"

namespace softneuro {
namespace {

template <typename T>
void select(const RunArgs& args, int threads) {
  const TensorView &condition = args.in[0], &yes = args.in[1], &no = args.in[2], &out = args.out;
  Broadcast<4> elements({&out, &condition, &yes, &no});
  elements.run(threads, args.parallel_for, [&](const auto& first, const auto& steps, int64_t length) {
    T* const to = out.as<T>() + first[0];
    const Bool* const c = condition.as<Bool>() + first[1];
    const T *const a = yes.as<T>() + first[2], *const b = no.as<T>() + first[3];
    with_step(steps[1], [&](auto step) {
      with_step(steps[2], [&](auto x) {
        with_step(steps[3], [&](auto y) {
          for (int64_t i = 0; i < length; ++i) to[i * steps[0]] = c[i * step].truth != 0 ? a[i * x] : b[i * y];
        });
      });
    });
  });
}

template <typename T>
class WhereSelect final : public Routine {
 public:
  WhereSelect()
      : Routine([] {
          const Schema values = f32_nchw.with(dtype_of<T>);
          RoutineInfo info = moving_info("where", "select", f32_nchw.with(DType::boolean), values);
          info.others = {values, values};
          return info;
        }()) {}

  Refusal check(const Problem& problem) const override { return refuse_post_ops(problem); }
  std::unique_ptr<const Prepared> prepare(const Problem& problem, const Tuning&,
                                          std::shared_ptr<const Packed>) const override {
    return prepared_call([threads = problem.threads](const RunArgs& args) { select<T>(args, threads); });
  }
};

}  // namespace

void where_select(RoutineList& list) {
  list.add<WhereSelect<float>>();
  list.add<WhereSelect<int64_t>>();
  list.add<WhereSelect<int32_t>>();
  list.add<WhereSelect<Bool>>();
}

}  // namespace softneuro
