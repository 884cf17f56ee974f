#include "layers/expand/expand.h"
#include "layers/shared/broadcast.h"
#include "layers/shared/moving.h"

namespace softneuro {
namespace {

class ExpandCopy final : public Routine {
 public:
  explicit ExpandCopy(DType dtype) : Routine(moving_info("expand", "copy", f32_nchw.with(dtype))) {}

  Refusal check(const Problem& problem) const override { return refuse_post_ops(problem); }
  std::unique_ptr<const Prepared> prepare(const Problem& problem, const Tuning&,
                                          std::shared_ptr<const Packed>) const override {
    return prepared_call([bits = dtype_bits(info().in.dtype), threads = problem.threads](const RunArgs& args) {
      const TensorView& x = args.in[0];
      bits == 64   ? copy_elements<uint64_t>(x, args.out, threads, args.parallel_for)
      : bits == 32 ? copy_elements<uint32_t>(x, args.out, threads, args.parallel_for)
                   : copy_elements<uint8_t>(x, args.out, threads, args.parallel_for);
    });
  }
};

}  // namespace

void expand_copy(RoutineList& list) {
  for (const DType dtype : {DType::float32, DType::int64, DType::int32, DType::boolean, DType::qint8}) {
    list.add<ExpandCopy>(dtype);
  }
}

}  // namespace softneuro
