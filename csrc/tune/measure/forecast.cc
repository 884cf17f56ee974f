#include "tune/measure/forecast.h"

#include <algorithm>
#include <cmath>

namespace softneuro {
namespace {

constexpr size_t witnesses = 3;
constexpr size_t least_witnesses = 2;
// A candidate's ratio may be so much smaller than in the layers that tell about it, and more by each doubling of a size
// that they are away (logarithms, base 2). In 18 tunings of networks on an AMX Xeon, half of all candidates would have
// been left out by it, and what was left out would have made the layers 0.6 % faster.
constexpr double doubt = 0.4, doubt_per_doubling = 0.25;

double distance(const std::vector<double>& a, const std::vector<double>& b) {
  double most = a.size() == b.size() ? 0 : INFINITY;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) most = std::max(most, std::abs(a[i] - b[i]));
  return most;
}

}  // namespace

void Forecast::learn(const ProblemClass& cls, std::span<const Candidate> candidates) {
  Known known{cls.sizes(), INFINITY, estimate_seconds(cls.problem(), 0), {}, {}};
  for (const Candidate& candidate : candidates) {
    if (candidate.measured && candidate.seconds > 0) known.best = std::min(known.best, candidate.seconds);
  }
  if (!std::isfinite(known.best)) return;
  for (const Candidate& candidate : candidates) {
    if (!candidate.measured || candidate.seconds <= 0) continue;
    const double ratio = std::log2(candidate.seconds / known.best);
    known.ratios[candidate.descriptor] = ratio;
    const auto [at, fresh] = known.routines.emplace(candidate.choice.routine, ratio);
    if (!fresh) at->second = std::min(at->second, ratio);
  }
  std::map<Storage, double> best;
  for (const Candidate& candidate : candidates) {
    if (!candidate.measured || candidate.seconds <= 0) continue;
    const auto [at, fresh] = best.emplace(storage_of(candidate), candidate.seconds);
    if (!fresh) at->second = std::min(at->second, candidate.seconds);
  }
  for (const auto& [storage, seconds] : best) paces_[storage].push_back(seconds / known.guess);
  kinds_[cls.kind()].push_back(std::move(known));
}

std::vector<std::pair<double, double>> Forecast::told(const ProblemClass& cls, const Candidate& candidate) const {
  std::vector<std::pair<double, double>> list;
  const auto kind = kinds_.find(cls.kind());
  if (kind == kinds_.end()) return list;
  const std::vector<double> sizes = cls.sizes();
  for (const Known& known : kind->second) {
    const double away = distance(known.sizes, sizes);
    const auto own = known.ratios.find(candidate.descriptor);
    const auto routine = known.routines.find(candidate.choice.routine);
    if (own != known.ratios.end()) {
      list.emplace_back(away, own->second);
    } else if (routine != known.routines.end()) {
      list.emplace_back(away, routine->second);
    }
  }
  std::sort(list.begin(), list.end());
  return list;
}

std::optional<Forecast::Ratio> Forecast::ratio(const ProblemClass& cls, const Candidate& candidate) const {
  auto list = told(cls, candidate);
  if (list.empty()) return {};
  const bool few = list.size() < least_witnesses;
  list.resize(std::min(list.size(), witnesses));
  double sum = 0, least = INFINITY;
  for (const auto& [away, ratio] : list) {
    sum += ratio;
    least = std::min(least, ratio - doubt - doubt_per_doubling * away);
  }
  return Ratio{std::exp2(sum / static_cast<double>(list.size())), few ? 0 : std::exp2(least)};
}

void Forecast::learn_fusion(const ProblemClass& cls, double ratio) {
  fusions_[cls.kind()].emplace_back(cls.sizes(), std::log2(ratio));
}

double Forecast::least_fusion_ratio(const ProblemClass& cls) const {
  const auto known = fusions_.find(cls.kind());
  if (known == fusions_.end() || known->second.size() < least_witnesses) return 0;
  double least = INFINITY;
  for (const auto& [sizes, ratio] : known->second) {
    least = std::min(least, ratio - doubt - doubt_per_doubling * distance(sizes, cls.sizes()));
  }
  return std::exp2(least);
}

const Forecast::Known* Forecast::nearest(const ProblemClass& cls) const {
  const auto kind = kinds_.find(cls.kind());
  if (kind == kinds_.end()) return nullptr;
  const std::vector<double> sizes = cls.sizes();
  return &*std::min_element(kind->second.begin(), kind->second.end(), [&](const Known& a, const Known& b) {
    return distance(a.sizes, sizes) < distance(b.sizes, sizes);
  });
}

double Forecast::seconds(const ProblemClass& cls, const Candidate& candidate) const {
  const auto list = told(cls, candidate);
  if (const Known* known = nearest(cls); known != nullptr && !list.empty()) {
    return known->best * std::exp2(list.front().second) * estimate_seconds(cls.problem(), 0) / known->guess;
  }
  const auto own = paces_.find(storage_of(candidate));
  std::vector<double> paces;
  if (own != paces_.end()) {
    paces = own->second;
  } else {
    for (const auto& [storage, others] : paces_) paces.insert(paces.end(), others.begin(), others.end());
  }
  if (paces.empty()) return candidate.seconds;
  const auto middle = paces.begin() + static_cast<ptrdiff_t>(paces.size() / 2);
  std::nth_element(paces.begin(), middle, paces.end());
  return candidate.seconds * *middle;
}

}  // namespace softneuro
