#include "kernels/winograd_1968/pairs.h"

#include <algorithm>
#include <cmath>

namespace softneuro {

void winograd_1968_normalize(int lanes, int channels, float* weights, const Winograd1968Terms& terms) {
  for (int lane = 0; lane < lanes; ++lane) {
    float most = 0;
    for (int c = 0; c < channels; ++c) most = std::max(most, std::abs(weights[c * lanes + lane]));
    // What is not finite spreads to all sums of the lane by itself.
    const int exponent = most > 0 && std::isfinite(most) ? std::clamp(std::ilogb(most), -126, 126) : 0;
    const float factor = std::ldexp(1.F, -exponent);
    double start = 0;
    for (int c = 0; c < channels; ++c) weights[c * lanes + lane] *= factor;
    for (int c = 0; c < channels; c += 2) {
      if (!winograd_1968_adds(lanes, c % lanes / 2)) continue;
      start -= static_cast<double>(weights[c * lanes + lane]) * weights[(c + 1) * lanes + lane];
    }
    terms.start[lane] = static_cast<float>(start);
    terms.scale[lane] = most > 0 ? std::ldexp(1.F, exponent) : 0.F;
  }
}

}  // namespace softneuro
