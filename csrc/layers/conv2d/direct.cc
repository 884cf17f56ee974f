// Direct convolution on nchw{c}c blobs: any kernel, stride, dilation and padding.
#include <algorithm>

#include "layers/conv2d/blocked.h"

namespace softneuro {
namespace {

class DirectConv2d final : public BlockedConv2d {
 public:
  explicit DirectConv2d(Isa isa) : BlockedConv2d("direct", isa) {}

  std::vector<Tuning> tunings(const Problem& problem) const override {
    const Conv2dParams p = conv2d_params(problem);
    // The copied rows of all input channels should stay in L2 while every panel passes over them.
    // Weights that do not fit beside them are read once per band, which then has to be as high as it may.
    const int64_t l2 = l2_bytes();
    const int64_t budget = p.k * p.group_c() * p.kh * p.kw * 4 > l2 ? l2 * 3 / 4 : l2 / 3;
    const int64_t row = (p.ow - 1) * p.sw + (p.kw - 1) * p.dw + 1;
    const int64_t in_rows = std::max<int64_t>(budget / (row * (p.group_c() + block()) * 4), 1);
    const int64_t fit =
        std::clamp<int64_t>((in_rows - (p.kh - 1) * p.dh - 1) / p.sh + 1, 1, std::max<int64_t>(p.oh, 1));
    // Bands of equal height.
    const int64_t bands = (std::max<int64_t>(p.oh, 1) + fit - 1) / fit;
    const int rows = static_cast<int>((p.oh + bands - 1) / bands);

    const int wide = max_panel(), narrow = std::min(2, wide);
    const int split = likely_split(p.oh * p.ow), band = std::max(rows, 1);
    std::vector<BlockedParams> list{{narrow, band, 16, split, 1}};
    if (p.group_k() > narrow * block()) list.push_back({wide, band, 16, split, 1});
    if (p.group_c() > 4 * block()) list.push_back({narrow, band, 4, split, 1});
    if (problem.threads > 1) list.push_back({narrow, band, 16, 1 - split, 1});
    return with_unpacked(problem, list);
  }

 protected:
  Refusal check_kernel(const Conv2dParams& p) const override {
    return p.pointwise() ? Refusal("a 1x1 kernel is the pointwise routine's") : Refusal();
  }
};

}  // namespace

void conv2d_direct(RoutineList& list) {
  for (Isa isa : all_isas()) list.add<DirectConv2d>(isa);
}

}  // namespace softneuro
