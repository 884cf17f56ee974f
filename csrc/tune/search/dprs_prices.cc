// Prices of what is bounded: a lower bound, and a first plan within the bounds.
#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "tune/search/dprs_within.h"

namespace softneuro::dprs {
namespace {

constexpr int most_prices = 30;      // of one bound
constexpr int rounds_of_prices = 4;  // where there are several bounds

}  // namespace

bool Within::fits(const Label& label) const {
  for (size_t k = 0; k < bounds_.size(); ++k) {
    if (label.amounts[k + 1] > bounds_[k].most) return false;
  }
  return true;
}

bool Within::note(const Label& label) {
  if (!fits(label) || label.amounts[0] >= cost_) return false;
  cost_ = label.amounts[0];
  leaves_.clear();
  for (const Leaf* leaf : parts_.leaves(label.part)) leaves_.push_back(*leaf);
  return true;
}

bool Within::proven() const {
  if (cost_ == infinity) return false;
  return cost_ - found_.lower_bound <= std::max(limits_.epsilon * found_.lower_bound, rounding * cost_);
}

double Within::allowed(const Amounts& weights) const {
  double sum = 0;
  for (size_t k = 0; k < bounds_.size(); ++k) sum += weights[k + 1] * bounds_[k].most;
  return sum;
}

Label Within::at_weights(const Amounts& weights) {
  auto priced = std::make_unique<Priced>(graph_, *tree_, weights);
  found_.stats.prices += 1;
  if (priced->total == infinity) throw Error("no combination of candidates fits together", "dprs");
  const size_t joints = parts_.joints();
  Label label = best_label(graph_, *tree_, *priced, parts_);
  note(label);
  parts_.shrink(joints);
  if (const double bound = priced->total - allowed(priced->weights);
      weights[0] == 1 && (best_ == nullptr || bound > best_bound_)) {
    best_bound_ = bound;
    found_.lower_bound = std::max(found_.lower_bound, bound);
    best_ = std::move(priced);
  }
  return label;
}

void Within::find_price(Amounts& weights, size_t k) {
  Amounts others = weights;
  others[k] = 0;
  Label over = at_weights(others);
  const double most = bounds_[k - 1].most;
  weights[k] = 0;
  if (over.amounts[k] <= most) return;
  Amounts alone{};
  alone[k] = 1;
  Label within = at_weights(alone);
  for (int step = 0; step < most_prices && within.amounts[k] < over.amounts[k] && within.amounts[k] <= most; ++step) {
    const double apart = dot(within.amounts, others) - dot(over.amounts, others);
    weights[k] = std::max(0.0, apart / (over.amounts[k] - within.amounts[k]));
    const Label middle = at_weights(weights);
    if (dot(middle.amounts, weights) >= dot(over.amounts, weights) * (1 - rounding)) break;
    (middle.amounts[k] <= most ? within : over) = middle;
  }
}

void Within::find_prices() {
  Amounts weights{1};
  if (bounds_.empty()) at_weights(weights);
  const int rounds = bounds_.size() > 1 ? rounds_of_prices : 1;
  for (int round = 0; round < rounds && !proven(); ++round) {
    const double before = found_.lower_bound;
    for (size_t k = 1; k <= bounds_.size(); ++k) find_price(weights, k);
    if (round > 0 && found_.lower_bound <= before * (1 + 1e-6)) break;
  }
  if (bounds_.size() > 1) follow_slopes();
}

void Within::follow_slopes() {
  double step = 1;
  for (int i = 0; i < most_prices && !proven() && !late(); ++i) {
    Amounts weights = best_->weights;
    const size_t joints = parts_.joints();
    const Label label = best_label(graph_, *tree_, *best_, parts_);
    parts_.shrink(joints);
    double squares = 0;
    Amounts slope{};
    for (size_t k = 1; k <= bounds_.size(); ++k) {
      const double scale = std::max(bounds_[k - 1].most, 1e-30);
      slope[k] = (label.amounts[k] - bounds_[k - 1].most) / scale;
      if (weights[k] == 0 && slope[k] < 0) slope[k] = 0;
      squares += slope[k] * slope[k];
    }
    if (squares == 0) return;
    const double gap = std::min(cost_, 1.05 * best_bound_) - best_bound_;
    for (size_t k = 1; k <= bounds_.size(); ++k) {
      weights[k] = std::max(0.0, weights[k] + step * gap / squares * slope[k] / std::max(bounds_[k - 1].most, 1e-30));
    }
    const double before = best_bound_;
    at_weights(weights);
    if (best_bound_ <= before) step *= 0.5;
  }
}

}  // namespace softneuro::dprs
