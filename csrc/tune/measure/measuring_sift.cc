// Which of a layer's candidates are worth measuring, and what of a layer stands for all of it.
#include <algorithm>
#include <cmath>
#include <map>

#include "tune/measure/excerpt.h"
#include "tune/measure/measuring.h"

namespace softneuro {
namespace {

constexpr size_t few = 6;              // candidates of which none is left out
constexpr double least_likely = 1.1;   // of what is left out, times the best
constexpr double untold_ratio = 1.05;  // of what no layer tells about: behind the best
// A long layer's candidates are sifted by a part of it.
constexpr int sifting_rounds = 3;
constexpr double sifting_share = 0.3, hopeless_part = 1.6;
constexpr double unknown_ratio = 1.3;  // of what the part has no place or there was no time for
constexpr size_t least_sifted = 3;

// The likeliest candidates come first, by ratio to the best and then by guess, as time may not do for all of them.
void sort_by_promise(std::vector<std::pair<double, Candidate*>>& order) {
  std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
    return std::pair(a.first, a.second->seconds) < std::pair(b.first, b.second->seconds);
  });
}

}  // namespace

// Takes those from what is missing that cannot win by what layers like this one tell; the others by what is expected.
std::vector<Candidate*> Measuring::leave_out(size_t item) {
  std::vector<Candidate*>& missing = missing_[item];
  const ProblemClass& cls = work_.layers[item].cls;
  std::vector<std::pair<double, Candidate*>> order;
  std::vector<Candidate*> out;
  for (Candidate* candidate : missing) {
    const auto ratio = forecast_.ratio(cls, *candidate);
    if (ratio && ratio->least > 1 && missing.size() > few) {
      candidate->seconds = std::max(ratio->likely, least_likely);
      out.push_back(candidate);
    } else {
      order.emplace_back(ratio ? ratio->likely : untold_ratio, candidate);
    }
  }
  sort_by_promise(order);
  missing.clear();
  for (const auto& [ratio, candidate] : order) missing.push_back(candidate);
  return out;
}

// The same by times of a part of a long layer, where that can be had.
void Measuring::sift(Profiler& profiler, size_t item, const Problem& problem, double seconds,
                     std::vector<Candidate*>& out) {
  std::vector<Candidate*>& missing = missing_[item];
  const auto part = excerpt(problem);
  if (!part || missing.size() <= few) return;
  PartCandidates sifted(problem, *part, missing);
  std::vector<Candidate*> fresh;
  const ProblemClass cls(*part);
  for (Candidate& copy : sifted.all()) {
    const auto known = ledger_.find_time(key_of(cls, copy), copy);
    if (known) {
      copy.seconds = *known;
      copy.measured = true;
    } else {
      fresh.push_back(&copy);
    }
  }
  profiler.measure(*part, fresh, {sifting_rounds, sifting_share * seconds});
  double best = INFINITY;
  for (const Candidate& copy : sifted.all()) {
    if (copy.measured) best = std::min(best, copy.seconds);
  }
  std::map<const Candidate*, double> ratios;
  for (size_t i = 0; i < sifted.all().size(); ++i) {
    if (sifted.all()[i].measured) ratios[&sifted.whole(i)] = sifted.all()[i].seconds / best;
  }
  std::vector<std::pair<double, Candidate*>> order;
  for (Candidate* candidate : missing) {
    const auto known = ratios.find(candidate);
    order.emplace_back(known != ratios.end() ? known->second : unknown_ratio, candidate);
  }
  sort_by_promise(order);
  missing.clear();
  for (const auto& [ratio, candidate] : order) {
    if (missing.size() < least_sifted || ratio < hopeless_part) {
      missing.push_back(candidate);
    } else {
      candidate->seconds = ratio;
      out.push_back(candidate);
    }
  }
}

// False if none of them runs on that part.
bool Measuring::measure_part(Profiler& profiler, size_t item, const Problem& part, const Profiler::Effort& effort) {
  PartCandidates found(work_.layers[item].problem, part, missing_[item]);
  std::vector<Candidate*> pointers;
  for (Candidate& copy : found.all()) pointers.push_back(&copy);
  profiler.measure(part, pointers, effort);
  bool any = false;
  for (size_t i = 0; i < pointers.size(); ++i) {
    if (!pointers[i]->measured) continue;
    found.whole(i).seconds = found.scale() * pointers[i]->seconds;
    found.whole(i).measured = any = true;
  }
  return any;
}

}  // namespace softneuro
