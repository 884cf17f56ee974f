// Conversions to and from tiled layouts: from row-major blobs, and from blocks of as many channels as there are lanes.
#include "kernels/integers.h"
#include "kernels/retile/retile.h"
#include "layers/shared/kernel_sizes.h"
#include "layers/shared/moving.h"

namespace softneuro {
namespace {

class AdaptTiles final : public Routine {
 public:
  AdaptTiles(Isa isa, const Layout& from, const Layout& to) : Routine(vector_info("adapt", "tiles", isa, from, to)) {}

  Refusal check(const Problem& problem) const override {
    const Shape& shape = problem.out().shape;
    if (shape.rank() != 4) return "tiles are of images";
    if (const Refusal sizes = check_kernel_sizes({shape[2] * shape[3]}); !sizes.accepted()) return sizes;
    return refuse_post_ops(problem);
  }

  std::unique_ptr<const Prepared> prepare(const Problem& problem, const Tuning&,
                                          std::shared_ptr<const Packed>) const override {
    const RetileKernels& kernels = *retile_kernels(info().isa);
    const bool to_tiles = info().out.layout.is_tiled(),
               blocked = (to_tiles ? info().in : info().out).layout.is_blocked();
    const auto kernel = to_tiles ? (blocked ? kernels.block_to_tiles : kernels.plane_to_tiles)
                                 : (blocked ? kernels.tiles_to_block : kernels.tiles_to_plane);
    return prepared_call(
        [kernel, to_tiles, threads = problem.threads](const RunArgs& args) { run(kernel, to_tiles, threads, args); });
  }

 private:
  static void run(decltype(RetileKernels::plane_to_tiles) kernel, bool to_tiles, int threads, const RunArgs& args) {
    const TensorView &image = to_tiles ? args.in[0] : args.out, &tiles = to_tiles ? args.out : args.in[0];
    const Shape& shape = image.shape;
    const int lanes = tiles.schema.layout.block;
    const TileGrid grid = tile_grid(shape[2], shape[3], lanes);
    const int64_t block = image.schema.layout.block, blocks = ceil_div(shape[1], block);
    const int64_t plane = shape[2] * shape[3], tiled_plane = grid.h * grid.w * lanes;
    const int64_t items = shape[0] * blocks * grid.h;
    const int64_t tasks = std::min(items, task_count(shape.elements(), threads));
    args.parallel_for(tasks, [&](int64_t task) {
      const Range part = split_range(items, tasks, task);
      for (int64_t item = part.begin; item < part.end;) {
        const int64_t row = item % grid.h, c = item / grid.h % blocks, n = item / grid.h / blocks;
        const int64_t end = std::min(grid.h, row + part.end - item);
        kernel({.image = image.f32() + n * image.strides[0] + c * block * plane,
                .tiles = tiles.f32() + n * tiles.strides[0] + c * block * tiled_plane,
                .h = narrow(shape[2]),
                .w = narrow(shape[3]),
                .across = narrow(grid.across),
                .tile_h = narrow(grid.h),
                .tile_w = narrow(grid.w),
                .begin = narrow(row),
                .end = narrow(end),
                .channels = narrow(std::min(block, shape[1] - c * block)),
                .stride = tiled_plane});
        item += end - row;
      }
    });
  }
};

}  // namespace

void adapt_tiles_routines(RoutineList& list) {
  for (const Isa isa : isas_best_first()) {
    const Layout tiled = Layout::tiled(isa_block(isa));
    for (const Layout& layout : {Layout::nchw(), Layout::blocked(isa_block(isa))}) {
      list.add<AdaptTiles>(isa, layout, tiled);
      list.add<AdaptTiles>(isa, tiled, layout);
    }
  }
}

}  // namespace softneuro
