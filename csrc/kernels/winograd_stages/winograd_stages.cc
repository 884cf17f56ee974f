#include "kernels/winograd_stages/winograd_stages.h"

#include <vector>

#include "kernels/levels.h"

namespace softneuro {

SN_KERNEL_LIST(WinogradStages, winograd_stages, SN_VECTOR_LEVELS)
const WinogradStages* winograd_stages(Isa isa) { return find_kernels(winograd_stages_list, isa); }

void winograd_position_weights(const WinogradShape& shape, const WinogradKernels& kernels, const float* weights,
                               float* dst) {
  const int taps = shape.kernel_h * shape.kernel_w, block = kernels.block;
  const std::vector<double> gh = winograd_weight_transform(shape.across_rows());
  const std::vector<double> gw = winograd_weight_transform(shape.along_rows());
  const WinogradWeights transform{shape.positions_h(), shape.positions_w(), shape.kernel_h,
                                  shape.kernel_w,      gh.data(),           gw.data()};
  const size_t position = static_cast<size_t>(shape.out_channels) * shape.in_channels;
  std::vector<float> lanes(static_cast<size_t>(taps) * block);
  for (int k = 0; k < shape.out_channels; ++k) {
    for (int c = 0; c < shape.in_channels; c += block) {
      const size_t at = static_cast<size_t>(k) * shape.in_channels + c;
      for (int lane = 0; lane < block; ++lane) {
        for (int tap = 0; tap < taps; ++tap) {
          lanes[static_cast<size_t>(tap) * block + lane] = weights[(at + lane) * taps + tap];
        }
      }
      kernels.transform_weights(transform, lanes.data(), block, dst + at, position);
    }
  }
}

}  // namespace softneuro
