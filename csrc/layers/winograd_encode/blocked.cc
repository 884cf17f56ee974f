// Tiles of blocked images to rows of matrices.
#include <algorithm>
#include <string>

#include "layers/shared/moving.h"
#include "layers/winograd_encode/winograd_encode.h"

namespace softneuro {
namespace {

class BlockedEncode final : public Routine {
 public:
  explicit BlockedEncode(Isa isa)
      : Routine({.layer_type = "winograd_encode",
                 .algorithm = "passes",
                 .isa = isa,
                 .in = f32_blocked(isa_block(isa)),
                 .out = f32_nchw,
                 .spreads_nonfinite = true}) {}

  Refusal check(const Problem& problem) const override {
    if (!problem.layer->post.empty()) return "has post-ops";
    const int block = isa_block(info().isa);
    return problem.in[0].shape[1] % block == 0 ? Refusal()
                                               : Refusal("channels are not a multiple of " + std::to_string(block));
  }

  std::unique_ptr<const Prepared> prepare(const Problem& problem, const Tuning&,
                                          std::shared_ptr<const Packed>) const override {
    const WinogradShape shape = winograd_encode_shape(*problem.layer, problem.in[0]);
    const int tasks = std::min(problem.threads, std::max(shape.tiles(), 1));
    // More than a third of the last cache is much, as the products' weights pass through it too.
    const size_t bytes = static_cast<size_t>(problem.out().shape.elements()) * sizeof(float);
    const bool large = caches().l3 != 0 && bytes > caches().l3 / 3;
    return prepared_call([shape, tasks, large, run = winograd_stages(info().isa)->encode](const RunArgs& args) {
      const bool aligned = (reinterpret_cast<uintptr_t>(args.out.data) | args.out.strides[0] * sizeof(float)) % 64 == 0;
      const WinogradEncodeArgs call{shape,          args.in[0].f32(),    args.in[0].strides[0],
                                    args.out.f32(), args.out.strides[0], large && aligned};
      args.parallel_for(tasks, [&](int64_t task) {
        const Range tiles = split_range(shape.tiles(), tasks, task);
        run(call, static_cast<int>(tiles.begin), static_cast<int>(tiles.end));
      });
    });
  }
};

}  // namespace

void winograd_encode_blocked(RoutineList& list) {
  for (Isa isa : all_isas()) list.add<BlockedEncode>(isa);
}

}  // namespace softneuro
