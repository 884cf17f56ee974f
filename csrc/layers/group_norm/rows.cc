// group_norm of row-major blobs: a group is one run of memory.
#include <cmath>

#include "kernels/normalize/normalize.h"
#include "layers/contract/routine.h"
#include "layers/group_norm/group_norm.h"
#include "layers/shared/grid.h"
#include "layers/weights/affine.h"

namespace softneuro {
namespace {

class PreparedGroupNorm final : public Prepared {
 public:
  PreparedGroupNorm(const Problem& problem, Isa isa, std::shared_ptr<const Packed> packed)
      : kernels_(normalize_kernels(isa)),
        threads_(problem.threads),
        packed_(std::move(packed)),
        weight_(find_packed<float>(packed_, "weight")),
        bias_(find_packed<float>(packed_, "bias")),
        images_(problem.out().shape[0]),
        plane_(problem.out().shape.product(2, problem.out().shape.rank())) {
    const GroupNormParams params = group_norm_params(*problem.layer, problem.out());
    eps_ = static_cast<float>(params.eps);
    groups_ = params.groups;
    channels_ = problem.out().shape[1] / groups_;
  }

  void run(const RunArgs& args) const override {
    const int64_t size = channels_ * plane_;
    Grid grid;
    grid.outer_rank = 1;
    grid.outer[0] = images_, grid.rows = groups_, grid.work = size;
    for_each_cell(grid, threads_, args.parallel_for, [&](const Cell& cell) {
      for (int64_t group = cell.row; group < cell.row + cell.rows; ++group) {
        const float* src = args.in[0].f32() + cell.outer * args.in[0].strides[0] + group * size;
        run_group(args.out.f32() + cell.outer * args.out.strides[0] + group * size, src, group * channels_);
      }
    });
  }

 private:
  void run_group(float* dst, const float* src, int64_t channel) const {
    const Moments m = kernels_.moments(src, channels_ * plane_);
    const float factor = 1 / std::sqrt(m.variance + eps_), shift = -m.offset * factor;
    if (weight_ == nullptr) {
      return kernels_.normalize({dst, src, nullptr, nullptr, channels_ * plane_, m.center, factor, shift});
    }
    const float *weight = weight_ + channel, *bias = bias_ + channel;
    if (plane_ == 1) return kernels_.normalize({dst, src, weight, bias, channels_, m.center, factor, shift});
    for (int64_t c = 0; c < channels_; ++c) {
      const int64_t at = c * plane_;
      kernels_.normalize(
          {dst + at, src + at, nullptr, nullptr, plane_, m.center, factor * weight[c], bias[c] + shift * weight[c]});
    }
  }

  const NormalizeKernels& kernels_;
  int threads_;
  std::shared_ptr<const Packed> packed_;
  const float *weight_, *bias_;                         // null: none
  int64_t images_, plane_, groups_ = 1, channels_ = 1;  // channels_: of a group
  float eps_ = 0;
};

class GroupNormRows final : public Routine {
 public:
  explicit GroupNormRows(Isa isa)
      : Routine({.layer_type = "group_norm",
                 .algorithm = "rows",
                 .isa = isa,
                 .in = f32_nchw,
                 .out = f32_nchw,
                 .inplace_input = 0}) {}

  Refusal check(const Problem& problem) const override {
    return problem.layer->post.empty() ? Refusal() : Refusal("takes no post-ops");
  }

  Packing packing(const Problem& problem, const Tuning&) const override {
    return affine_packing(*problem.layer, problem.out().shape[1]);
  }
  void pack(const Problem& problem, const Tuning&, Packed& to) const override { pack_affine(*problem.layer, to); }

  std::unique_ptr<const Prepared> prepare(const Problem& problem, const Tuning&,
                                          std::shared_ptr<const Packed> packed) const override {
    return std::make_unique<PreparedGroupNorm>(problem, info().isa, std::move(packed));
  }
};

}  // namespace

void group_norm_rows(RoutineList& list) {
  for (Isa isa : all_isas()) list.add<GroupNormRows>(isa);
}

}  // namespace softneuro
