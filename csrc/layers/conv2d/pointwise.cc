// 1x1 convolution of any stride on nchw{c}c blobs: a matrix product, of pixels where the stride is one.
#include <algorithm>

#include "layers/conv2d/blocked.h"

namespace softneuro {
namespace {

class PointwiseConv2d final : public BlockedConv2d {
 public:
  explicit PointwiseConv2d(Isa isa) : BlockedConv2d("pointwise", isa) {}

  std::vector<Tuning> tunings(const Problem& problem) const override {
    const Conv2dParams p = conv2d_params(problem);
    // All input channels of a block of pixels should stay in L2 while every panel passes over them.
    const int64_t budget = l2_bytes() / 4;
    const int64_t pixels = std::clamp<int64_t>(budget / ((p.group_c() + block()) * 4), 28, 1 << 20);
    const bool whole = direct_shape(p).pointwise();
    const int rows =
        static_cast<int>(whole ? pixels / 28 * 28 : std::max<int64_t>(pixels / std::max<int64_t>(p.ow, 1), 1));

    const int wide = max_panel(), narrow = std::min(2, wide);
    const int split = likely_split(p.oh * p.ow);
    std::vector<BlockedParams> list{{narrow, rows, 128, split, 1}};
    if (p.group_k() > narrow * block()) list.push_back({wide, rows, 128, split, 1});
    // Panels of three load the least for each product; of four, they leave the fewest blocks alone at the end.
    if (wide > 3 && p.group_k() > 2 * block()) list.push_back({3, rows, 128, split, 1});
    if (p.group_c() > 16 * block()) list.push_back({narrow, rows, 16, split, 1});
    if (problem.threads > 1) list.push_back({narrow, rows, 128, 1 - split, 1});
    return with_unpacked(problem, list);
  }

 protected:
  Refusal check_kernel(const Conv2dParams& p) const override {
    return p.pointwise() ? Refusal() : Refusal("not a 1x1 kernel without padding");
  }
};

}  // namespace

void conv2d_pointwise(RoutineList& list) {
  for (Isa isa : all_isas()) list.add<PointwiseConv2d>(isa);
}

}  // namespace softneuro
