#include "tune/measure/measuring.h"

#include <algorithm>
#include <cmath>

#include "tune/measure/cost_log.h"
#include "tune/measure/excerpt.h"
#include "tune/measure/pace.h"
#include "tune/search/childnets.h"

namespace softneuro {
namespace {

// Shares of the time budget; plans as wholes have the rest.
constexpr double adapt_share = 0.05, unit_share = 0.6, pace_share = 0.08;
constexpr double late_share = 0.88;  // for layers that come late, as a short look is better than a forecast
constexpr Profiler::Effort adapt_effort{9, 0.005}, confirming{7, 0.05}, late{3, 0.05};
constexpr int most_layer_rounds = 15, least_layer_rounds = 5;  // for a layer of much and of little time
constexpr double fusions_later = 0.4;

}  // namespace

Measuring::Measuring(Work& work, std::string graph, const TuneSettings& settings, CostDb& db, CacheState cache_state,
                     Timekeeper& timekeeper, const Progress& progress)
    : work_(work),
      graph_(std::move(graph)),
      settings_(settings),
      ledger_(db, settings.threads),
      cache_state_(cache_state),
      timekeeper_(timekeeper),
      progress_(progress),
      missing_(work.layers.size()),
      measured_(work.layers.size()),
      known_(work.layers.size()) {}

std::string Measuring::signature_of(size_t item, const Candidate& candidate) const {
  return key_of(work_.layers[item].cls, candidate);
}

// The key of a time is the class, as far as the routine makes use of it, and the place of the weights.
std::string Measuring::key_of(const ProblemClass& cls, const Candidate& candidate) const {
  const bool weights = !cls.problem().layer->weights.empty();
  const std::string& known = candidate.choice.routine->info().exploits_sparsity ? cls.str() : cls.dense();
  return known + " " + std::string(cache_state_name(weights ? cache_state_ : CacheState::hot));
}

// A time, or a forecast that counts; false if there is neither.
bool Measuring::recall(size_t item, Candidate& candidate) {
  const std::string signature = signature_of(item, candidate);
  auto seconds = ledger_.find_time(signature, candidate);
  const bool measured = seconds.has_value();
  if (!measured) seconds = ledger_.find_forecast(graph_, signature, candidate, settings_.time_budget_s);
  if (!seconds) return false;
  candidate.seconds = *seconds;
  candidate.measured = measured;
  candidate.forecast = !measured;
  if (measured) known_[item].push_back(&candidate);
  ++recalled_;
  return true;
}

void Measuring::note_forecast(size_t item, const Candidate& candidate, double budget) {
  ledger_.add_forecast(graph_, signature_of(item, candidate), candidate, candidate.seconds, budget);
}

void Measuring::recall() {
  for (size_t i = 0; i < work_.layers.size(); ++i) {
    LayerCandidates& item = work_.layers[i];
    for (Candidate& candidate : item.candidates) {
      if (is_childnet(candidate)) continue;
      if (candidate.choice.routine->info().view) {
        candidate.measured = true;
        continue;
      }
      ++candidates_;
      if (!measurable(item.problem)) continue;
      if (recall(i, candidate)) continue;
      missing_[i].push_back(&candidate);
      ++total_;
    }
    forecast_.learn(item.cls, item.candidates);
  }
  for (auto& item : work_.adapts) {
    if (item.routine->info().view) continue;
    ++candidates_;
    auto known = ledger_.find_time(item.desc.str(), *item.routine);
    if (!known) known = ledger_.find_forecast(graph_, item.desc.str(), *item.routine, settings_.time_budget_s);
    if (known) {
      item.seconds = *known;
      ++recalled_;
    } else {
      missing_adapts_.push_back(&item);
      ++total_;
    }
  }
}

// What the layers take in whose place a fusion comes, by what is known.
double Measuring::instead_seconds(size_t item, bool measured) const {
  double sum = 0;
  for (const size_t part : work_.instead[item]) sum += best_seconds(part, measured);
  return sum;
}

double Measuring::best_seconds(size_t item, bool measured) const {
  double best = INFINITY;
  for (const Candidate& candidate : work_.layers[item].candidates) {
    if (candidate.measured || !measured) best = std::min(best, candidate.seconds);
  }
  return best;
}

// Seconds in all of the graph, by a guess. A fusion is worth no more than what its layers take, which may know of
// zeros that it has no use for.
double Measuring::weight(size_t item) const {
  double least = best_seconds(item, false);
  if (is_fusion(item)) least = std::min(least, instead_seconds(item, false));
  return std::isfinite(least) ? least * work_.uses[item] : 0;
}

double Measuring::left() const { return std::max(0.0, unit_share * timekeeper_.budget() - timekeeper_.spent()); }

void Measuring::tell() {
  if (progress_) progress_(std::min(done_, total_), total_);
}

void Measuring::measure_adapts(Profiler& profiler) {
  std::vector<double> paces;
  for (auto* item : missing_adapts_) {
    if (timekeeper_.spent() > adapt_share * timekeeper_.budget()) break;
    const double guess = item->seconds;
    const TensorDesc part = large_part(item->desc).value_or(item->desc);
    const double scale = static_cast<double>(item->desc.shape.elements()) / static_cast<double>(part.shape.elements());
    item->seconds = scale * profiler.measure_adapt(part, *item->routine, adapt_effort);
    item->known = true;
    if (guess > 0) paces.push_back(item->seconds / guess);
    ledger_.add_time(item->desc.str(), *item->routine, item->seconds);
    ++measured_count_, ++done_;
    tell();
  }
  const auto middle = paces.begin() + static_cast<ptrdiff_t>(paces.size() / 2);
  std::nth_element(paces.begin(), middle, paces.end());
  for (auto* item : missing_adapts_) {
    if (item->known) continue;
    if (!paces.empty()) item->seconds *= *middle;
    ledger_.add_forecast(graph_, item->desc.str(), *item->routine, item->seconds, settings_.time_budget_s);
  }
}

// Layers that differ in what is special about their weights have candidates in common.
void Measuring::forget_known(size_t item) {
  done_ +=
      static_cast<int>(std::erase_if(missing_[item], [&](Candidate* candidate) { return recall(item, *candidate); }));
}

// Forecasts what was not measured: not less than what was, which is certain.
void Measuring::expect(size_t item, Candidate& candidate, double budget, double best) {
  candidate.seconds = std::max(forecast_.seconds(work_.layers[item].cls, candidate), best);
  candidate.forecast = true;
  note_forecast(item, candidate, budget);
}

void Measuring::measure_layer(Profiler& profiler, size_t item, const Profiler::Effort& effort) {
  LayerCandidates& layer = work_.layers[item];
  std::vector<Candidate*> out = leave_out(item);
  const auto part = large_part(layer.problem);
  sift(profiler, item, part ? *part : layer.problem, effort.seconds, out);
  if (!part || !measure_part(profiler, item, *part, effort)) {
    profiler.measure(layer.problem, missing_[item], effort);
  }
  const double best = best_seconds(item, true);
  const bool refused = !std::isfinite(best);  // or not measurable: so it will be
  for (Candidate* candidate : missing_[item]) {
    if (!candidate->measured) {
      expect(item, *candidate, refused ? INFINITY : settings_.time_budget_s, refused ? 0 : best);
      continue;
    }
    candidate->forecast = false;
    ledger_.add_time(signature_of(item, *candidate), *candidate, candidate->seconds);
    measured_[item].push_back(candidate);
    ++measured_count_;
  }
  for (Candidate* candidate : out) {
    if (refused) {
      expect(item, *candidate, INFINITY, 0);
      continue;
    }
    candidate->forecast = true;
    candidate->seconds *= best;
    note_forecast(item, *candidate, INFINITY);
  }
  done_ += static_cast<int>(missing_[item].size() + out.size());
  missing_[item].clear();
  forecast_.learn(layer.cls, layer.candidates);
  const double instead = instead_seconds(item, true);
  if (is_fusion(item) && std::isfinite(best) && std::isfinite(instead)) {
    forecast_.learn_fusion(layer.cls, best / instead);
  }
}

// True if fusions like it have lost by so much that this one is not worth a look.
bool Measuring::loses_as_others(size_t item) {
  if (!is_fusion(item)) return false;
  const double ratio = forecast_.least_fusion_ratio(work_.layers[item].cls);
  const double instead = instead_seconds(item, true);
  if (ratio < 1 || !std::isfinite(instead)) return false;
  for (Candidate* candidate : missing_[item]) {
    candidate->seconds = ratio * instead;
    candidate->forecast = true;
    note_forecast(item, *candidate, settings_.time_budget_s);
  }
  done_ += static_cast<int>(missing_[item].size());
  missing_[item].clear();
  return true;
}

void Measuring::measure(Profiler& profiler) {
  measure_adapts(profiler);
  std::vector<size_t> order;
  for (size_t i = 0; i < missing_.size(); ++i) {
    if (!missing_[i].empty()) order.push_back(i);
  }
  std::vector<double> weights;
  for (size_t i = 0; i < missing_.size(); ++i) weights.push_back(weight(i));
  // Fusions after most of the layers that they take the place of.
  const auto rank = [&](size_t item) { return is_fusion(item) ? fusions_later * weights[item] : weights[item]; };
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return rank(a) > rank(b); });
  double waiting = 0;
  for (const size_t i : order) waiting += weights[i];
  const double mean = waiting / static_cast<double>(std::max<size_t>(1, order.size()));
  for (const size_t i : order) {
    const double share = weights[i] / std::max(waiting, 1e-12);
    waiting -= weights[i];
    forget_known(i);
    if (missing_[i].empty() || loses_as_others(i)) continue;
    const double seconds = left();
    if (seconds <= 0 && timekeeper_.spent() > late_share * timekeeper_.budget()) {
      for (Candidate* candidate : missing_[i]) expect(i, *candidate, settings_.time_budget_s, 0);
      missing_[i].clear();
      continue;
    }
    Profiler::Effort effort = late;
    if (seconds > 0) {
      const double rounds = most_layer_rounds * std::sqrt(weights[i] / mean);
      // Twice its share: most layers stop well before theirs.
      effort = {static_cast<int>(std::clamp<double>(rounds, least_layer_rounds, most_layer_rounds)),
                2 * seconds * share};
    }
    measure_layer(profiler, i, effort);
    tell();
  }
}

bool Measuring::confirm(Profiler& profiler, std::span<const std::pair<size_t, size_t>> candidates) {
  bool any = false;
  for (const auto& [item, index] : candidates) {
    LayerCandidates& layer = work_.layers[item];
    Candidate* const one[] = {&layer.candidates[index]};
    if (left() <= 0 || is_childnet(*one[0]) || layer.problem.layer->host != nullptr) continue;
    profiler.measure(layer.problem, one, confirming);
    if (!one[0]->measured) continue;
    one[0]->forecast = false;
    measured_[item].push_back(one[0]);
    ++measured_count_;
    any = true;
  }
  return any;
}

void Measuring::finish(Profiler& profiler) {
  const double seconds = std::min(pace_share * timekeeper_.budget(), 0.7 * timekeeper_.left());
  std::vector<TimedLayer> timed;
  for (size_t i = 0; i < measured_.size(); ++i) {
    const Problem& problem = work_.layers[i].problem;
    if (problem.layer->host == nullptr) timed.push_back({&problem, measured_[i], known_[i]});
  }
  if (seconds > 0) bring_to_one_pace(timed, profiler, seconds);
  done_ = total_;
  tell();
  for (size_t i = 0; i < measured_.size(); ++i) {
    for (const Candidate* candidate : measured_[i]) {
      ledger_.add_time(signature_of(i, *candidate), *candidate, candidate->seconds);
    }
  }
}

void Measuring::log() const {
  for (const LayerCandidates& layer : work_.layers) log_costs(layer.cls.str(), layer.candidates);
}

void Measuring::count(GraphCosts& costs) const {
  costs.candidates = candidates_;
  costs.measured = measured_count_;
  costs.recalled = recalled_;
  costs.guessed = candidates_ - measured_count_ - recalled_;
}

}  // namespace softneuro
