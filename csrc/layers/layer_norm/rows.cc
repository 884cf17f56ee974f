#include "layers/layer_norm/rows.h"

#include <algorithm>
#include <cmath>

#include "kernels/normalize/normalize.h"
#include "layers/layer_norm/layer_norm.h"
#include "layers/shared/grid.h"

namespace softneuro {
namespace {

class PreparedRows final : public Prepared {
 public:
  PreparedRows(const NormalizedRows& rows, int threads, Isa isa, std::shared_ptr<const Packed> packed)
      : kernels_(normalize_kernels(isa)),
        rows_(rows),
        threads_(threads),
        packed_(std::move(packed)),
        weight_(find_packed<float>(packed_, "weight")),
        bias_(find_packed<float>(packed_, "bias")) {}

  void run(const RunArgs& args) const override {
    if (rows_.size == 0) return;
    Grid grid;
    grid.outer_rank = 1;
    grid.outer[0] = rows_.images, grid.rows = rows_.rows, grid.work = rows_.size;
    for_each_cell(grid, threads_, args.parallel_for, [&](const Cell& cell) {
      for (int64_t row = cell.row; row < cell.row + cell.rows; ++row) {
        const int64_t at = row * rows_.size;
        run_row(args.out.f32() + cell.outer * args.out.strides[0] + at,
                args.in[0].f32() + cell.outer * args.in[0].strides[0] + at, rows_.weight_of(at));
      }
    });
  }

 private:
  void run_row(float* dst, const float* src, size_t first_weight) const {
    const Moments m = moments(src);
    const float factor = 1 / std::sqrt(m.variance + static_cast<float>(rows_.eps)), shift = -m.offset * factor;
    if (weight_ == nullptr) {
      return kernels_.normalize({dst, src, nullptr, nullptr, rows_.size, m.center, factor, shift});
    }
    const float *weight = weight_ + first_weight, *bias = bias_ == nullptr ? nullptr : bias_ + first_weight;
    if (rows_.plane == 1) return kernels_.normalize({dst, src, weight, bias, rows_.size, m.center, factor, shift});
    for (int64_t at = 0; at < rows_.size; at += rows_.plane, ++weight) {
      const float offset = bias == nullptr ? 0 : *bias++;
      kernels_.normalize(
          {dst + at, src + at, nullptr, nullptr, rows_.plane, m.center, factor * *weight, offset + shift * *weight});
    }
  }

  Moments moments(const float* src) const {
    if (rows_.about_zero) return {0, 0, kernels_.mean_square(src, rows_.size, {})};
    return kernels_.moments(src, rows_.size, {});
  }

  const NormalizeKernels& kernels_;
  NormalizedRows rows_;
  int threads_;
  std::shared_ptr<const Packed> packed_;
  const float *weight_, *bias_;  // null: none
};

}  // namespace

NormalizeRoutine::NormalizeRoutine(const char* layer_type, Isa isa, NormalizeParams params)
    : Routine({.layer_type = layer_type,
               .algorithm = "rows",
               .isa = isa,
               .in = f32_nchw,
               .out = f32_nchw,
               .inplace_input = 0}),
      params_(params) {}

Refusal NormalizeRoutine::check(const Problem& problem) const {
  if (!problem.layer->post.empty()) return "takes no post-ops";
  const Shape& shape = problem.out().shape;
  if (shape.rank() > 1 && params_(*problem.layer, problem.out()).images < shape[0]) {
    return "statistics over axis 0, along which a blob may have gaps";
  }
  return {};
}

Packing NormalizeRoutine::packing(const Problem& problem, const Tuning&) const {
  Packing packing;
  const Layer& layer = *problem.layer;
  if (layer.weights.empty()) return packing;
  const int64_t size = params_(layer, problem.out()).weights;
  add_padded(packing, "weight", layer.find_weight("weight"), size);
  add_bias(packing, layer, size);
  return packing;
}

void NormalizeRoutine::pack(const Problem& problem, const Tuning&, Packed& to) const {
  pack_bias(*problem.layer, to);
  if (const Constant* weight = problem.layer->find_weight("weight")) {
    pack_padded(weight, to, "weight");
  } else {
    std::fill_n(to.at<float>("weight"), to.packing().find("weight")->count, 1.0f);
  }
}

std::unique_ptr<const Prepared> NormalizeRoutine::prepare(const Problem& problem, const Tuning&,
                                                          std::shared_ptr<const Packed> packed) const {
  return std::make_unique<PreparedRows>(params_(*problem.layer, problem.out()), problem.threads, info().isa,
                                        std::move(packed));
}

void layer_norm_rows(RoutineList& list) {
  for (Isa isa : all_isas()) list.add<NormalizeRoutine>("layer_norm", isa, layer_norm_params);
}

}  // namespace softneuro
