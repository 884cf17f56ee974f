// Casts to integers and booleans. Integers keep their lowest bits, reals lose their fraction.
#include <limits>
#include <type_traits>

#include "layers/cast/cast.h"
#include "layers/shared/moving.h"

namespace softneuro {
namespace {

template <typename To, typename From>
To whole(From x) {
  if constexpr (std::is_same_v<From, Bool>) {
    return whole<To>(static_cast<uint8_t>(x.truth != 0 ? 1 : 0));
  } else if constexpr (std::is_same_v<To, Bool>) {
    return {static_cast<uint8_t>(x != 0 ? 1 : 0)};
  } else if constexpr (std::is_floating_point_v<From>) {
    // A value beyond the type becomes its least number, as CPUs have it.
    constexpr auto beyond = -static_cast<float>(std::numeric_limits<To>::min());
    return x >= -beyond && x < beyond ? static_cast<To>(x) : std::numeric_limits<To>::min();
  } else {
    return static_cast<To>(x);
  }
}

template <typename From, typename To>
class CastWhole final : public Routine {
 public:
  CastWhole() : Routine(moving_info("cast", "whole", f32_nchw.with(dtype_of<From>), f32_nchw.with(dtype_of<To>))) {}

  Refusal check(const Problem& problem) const override {
    if (cast_type(*problem.layer) != dtype_of<To>) return "it is to another type";
    return refuse_post_ops(problem);
  }
  std::unique_ptr<const Prepared> prepare(const Problem& problem, const Tuning&,
                                          std::shared_ptr<const Packed>) const override {
    return prepared_call([threads = problem.threads](const RunArgs& args) {
      for_runs(args.in[0], args.out, threads, args.parallel_for, [](const void* src, void* dst, int64_t count) {
        const auto* const from = static_cast<const From*>(src);
        auto* const to = static_cast<To*>(dst);
        for (int64_t i = 0; i < count; ++i) to[i] = whole<To>(from[i]);
      });
    });
  }
};

template <typename To>
void add(RoutineList& list) {
  list.add<CastWhole<float, To>>();
  list.add<CastWhole<uint8_t, To>>();
  list.add<CastWhole<int8_t, To>>();
  if constexpr (!std::is_same_v<To, int32_t>) list.add<CastWhole<int32_t, To>>();
  if constexpr (!std::is_same_v<To, int64_t>) list.add<CastWhole<int64_t, To>>();
  if constexpr (!std::is_same_v<To, Bool>) list.add<CastWhole<Bool, To>>();
}

}  // namespace

void cast_whole_routines(RoutineList& list) {
  add<int64_t>(list);
  add<int32_t>(list);
  add<Bool>(list);
}

}  // namespace softneuro
