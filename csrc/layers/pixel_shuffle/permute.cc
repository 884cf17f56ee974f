// In memory, pixel_shuffle is a permutation of the dimensions N, C, i, j, H, W.
#include <array>

#include "layers/shared/moving.h"
#include "layers/transpose/permute.h"

namespace softneuro {
namespace {

class PixelShufflePermute final : public Routine {
 public:
  PixelShufflePermute(Isa isa, const Layout& layout)
      : Routine(vector_info("pixel_shuffle", "permute", isa, layout, layout)) {}
  explicit PixelShufflePermute(const Schema& schema) : Routine(moving_info("pixel_shuffle", "permute", schema)) {}

  Refusal check(const Problem& problem) const override { return refuse_post_ops(problem); }

  std::unique_ptr<const Prepared> prepare(const Problem& problem, const Tuning&,
                                          std::shared_ptr<const Packed>) const override {
    const Shape &in = problem.in[0].shape, &out = problem.out().shape;
    const int64_t r = problem.layer->attrs.integer("factor");
    const bool channels_last = info().out.layout == Layout::nhwc();
    const std::array<int64_t, 6> dims =
        channels_last ? std::array{in[0], in[2], in[3], out[1], r, r} : std::array{in[0], out[1], r, r, in[2], in[3]};
    // N, H, W, C, i, j to N, H, i, W, j, C; or N, C, i, j, H, W to N, C, H, i, W, j.
    constexpr std::array perm{0, 1, 4, 2, 5, 3};
    return prepared_call([permutation = Permutation(dims, perm, info().isa, problem.threads)](const RunArgs& args) {
      permutation.run(args.in[0], args.out, args.parallel_for);
    });
  }
};

}  // namespace

void pixel_shuffle_permute_routines(RoutineList& list) {
  for (Isa isa : isas_best_first()) {
    if (transpose2d_kernel(isa) == nullptr) continue;
    list.add<PixelShufflePermute>(isa, Layout::nchw());
    list.add<PixelShufflePermute>(isa, Layout::nhwc());
  }
  for (const Schema& schema : moved_schemas()) {
    if (schema.dtype != DType::float32) list.add<PixelShufflePermute>(schema);
  }
}

}  // namespace softneuro
