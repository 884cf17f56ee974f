#include "tune/measure/samples.h"

#include <algorithm>

namespace softneuro {

double winsorised_mean(std::vector<double> samples) {
  std::sort(samples.begin(), samples.end());
  const size_t n = samples.size(), cut = (n + 2) / 5;
  const double low = samples[cut], high = samples[n - 1 - cut];
  double sum = 0;
  for (const double sample : samples) sum += std::clamp(sample, low, high);
  return sum / static_cast<double>(n);
}

static double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return 0.5 * (values[(values.size() - 1) / 2] + values[values.size() / 2]);
}

void set_pace(std::span<std::vector<double>* const> samples) {
  size_t rounds = 0;
  for (const auto* own : samples) rounds = std::max(rounds, own->size());
  std::vector<double> middles;  // of those that stayed
  for (const auto* own : samples) middles.push_back(own->size() == rounds ? median(*own) : 0);
  for (size_t round = 0; round < rounds; ++round) {
    std::vector<double> paces;
    for (size_t i = 0; i < samples.size(); ++i) {
      if (middles[i] > 0) paces.push_back((*samples[i])[round] / middles[i]);
    }
    if (paces.size() < 2) return;  // one alone may vary by itself
    const double pace = median(std::move(paces));
    for (auto* own : samples) {
      if (pace > 0 && round < own->size()) (*own)[round] /= pace;
    }
  }
}

}  // namespace softneuro
