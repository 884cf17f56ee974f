// Rows of matrices to tiles of blocked images.
#include <algorithm>
#include <string>

#include "layers/shared/moving.h"
#include "layers/winograd_decode/winograd_decode.h"

namespace softneuro {
namespace {

class BlockedDecode final : public Routine {
 public:
  explicit BlockedDecode(Isa isa)
      : Routine({.layer_type = "winograd_decode",
                 .algorithm = "passes",
                 .isa = isa,
                 .in = f32_nchw,
                 .out = f32_blocked(isa_block(isa)),
                 .spreads_nonfinite = true}) {}

  Refusal check(const Problem& problem) const override {
    const int block = isa_block(info().isa);
    return problem.in[0].shape[2] % block == 0 ? Refusal()
                                               : Refusal("channels are not a multiple of " + std::to_string(block));
  }

  Packing packing(const Problem& problem, const Tuning&) const override {
    Packing packing;
    add_bias(packing, *problem.layer, problem.in[0].shape[2]);
    return packing;
  }
  void pack(const Problem& problem, const Tuning&, Packed& to) const override { pack_bias(*problem.layer, to); }

  std::unique_ptr<const Prepared> prepare(const Problem& problem, const Tuning&,
                                          std::shared_ptr<const Packed> packed) const override {
    const WinogradShape shape = winograd_decode_shape(*problem.layer, problem.in[0]);
    const int tasks = std::min(problem.threads, std::max(shape.tiles(), 1));
    const bool residual = problem.layer->post.residual;
    const Epilogue epilogue{find_packed<float>(packed, "bias"), nullptr, problem.layer->post.activation};
    return prepared_call(
        [shape, tasks, residual, epilogue, packed, run = winograd_stages(info().isa)->decode](const RunArgs& args) {
          WinogradDecodeArgs call{shape, args.in[0].f32(), args.in[0].strides[0], args.out.f32(), args.out.strides[0],
                                  0,     epilogue};
          if (residual) call.epilogue.residual = args.in[1].f32(), call.residual_image = args.in[1].strides[0];
          args.parallel_for(tasks, [&](int64_t task) {
            const Range tiles = split_range(shape.tiles(), tasks, task);
            run(call, static_cast<int>(tiles.begin), static_cast<int>(tiles.end));
          });
        });
  }
};

}  // namespace

void winograd_decode_blocked(RoutineList& list) {
  for (Isa isa : all_isas()) list.add<BlockedDecode>(isa);
}

}  // namespace softneuro
