// rotary, row by row, of blobs as they lie.
#include "kernels/rotary/rotary.h"
#include "layers/contract/routine.h"
#include "layers/rotary/rotary.h"
#include "layers/shared/grid.h"

namespace softneuro {
namespace {

class PreparedRotary final : public Prepared {
 public:
  PreparedRotary(const Problem& problem, Isa isa)
      : kernel_(rotary_kernel(isa)), shape_(problem.out().shape), threads_(problem.threads) {}

  void run(const RunArgs& args) const override {
    Grid grid;
    grid.outer_rank = 2;
    grid.outer[0] = shape_[0], grid.outer[1] = shape_[1];
    grid.rows = shape_[2], grid.work = shape_[3];
    if (shape_[3] == 0) return;
    for_each_cell(grid, threads_, args.parallel_for, [&](const Cell& cell) {
      const int64_t batch = cell.outer / shape_[1], head = cell.outer % shape_[1];
      const auto at = [&](const TensorView& view, int64_t row) {
        const auto step = [&](size_t axis, int64_t index) {
          return view.shape[static_cast<int>(axis)] == 1 ? 0 : index * view.strides[axis];
        };
        return view.f32() + step(0, batch) + step(1, head) + step(2, row);
      };
      for (int64_t row = cell.row; row < cell.row + cell.rows; ++row) {
        kernel_({at(args.out, row), at(args.in[0], row), at(args.in[1], row), at(args.in[2], row), shape_[3] / 2});
      }
    });
  }

 private:
  RotaryKernel kernel_;
  Shape shape_;
  int threads_;
};

class RotaryRows final : public Routine {
 public:
  explicit RotaryRows(Isa isa)
      : Routine({.layer_type = "rotary",
                 .algorithm = "rows",
                 .isa = isa,
                 .in = f32_nchw.with(Layout::nchw().with_strides()),
                 .out = f32_nchw}) {}

  Refusal check(const Problem& problem) const override {
    return problem.layer->post.empty() ? Refusal() : Refusal("takes no post-ops");
  }
  std::unique_ptr<const Prepared> prepare(const Problem& problem, const Tuning&,
                                          std::shared_ptr<const Packed>) const override {
    return std::make_unique<PreparedRotary>(problem, info().isa);
  }
};

}  // namespace

void rotary_rows(RoutineList& list) {
  for (const Isa isa : isas_best_first()) list.add<RotaryRows>(isa);
}

}  // namespace softneuro
