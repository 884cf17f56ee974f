// Searches with fronts below the best plan that is known, between the bounds that prices have found.
#include "tune/search/dprs_labels.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "base/error.h"
#include "tune/search/dprs_within.h"

namespace softneuro {
namespace dprs {
namespace {

constexpr int most_searches = 12;

std::vector<Factor> scopes_of(const FrontGraph& graph) {
  std::vector<Factor> factors;
  for (const FrontFactor& factor : graph.factors) factors.push_back({factor.scope, {}});
  return factors;
}

}  // namespace

Within::Within(const DprsProblem& problem, const std::vector<Bound>& bounds, const LabelLimits& limits)
    : problem_(problem),
      bounds_(bounds),
      limits_(limits),
      model_(problem),
      graph_(make_fronts(problem, model_, bounds, parts_)),
      end_(Clock::now() + std::chrono::duration_cast<Clock::duration>(
                              std::chrono::duration<double>(std::min(limits.time_limit_s, 1e6)))),
      order_(choose_order({graph_.domains, scopes_of(graph_), 0})) {}

WithinBounds Within::run() {
  if (order_.total > static_cast<double>(limits_.max_entries)) return std::move(found_);
  tree_ = std::make_unique<Tree>(graph_, order_);
  for (size_t k = 0; k < bounds_.size(); ++k) {
    Amounts weights{};
    weights[k + 1] = 1;
    least_.push_back(std::make_unique<Priced>(graph_, *tree_, weights));
    if (least_.back()->total == infinity) throw Error("no combination of candidates fits together", "dprs");
    if (least_.back()->total > bounds_[k].most * (1 + rounding)) {
      found_.lower_bound = infinity;
      return std::move(found_);
    }
    least_.back()->look_back(*tree_);
    note(best_label(graph_, *tree_, *least_.back(), parts_));
  }
  find_prices();
  found_.stats.priced_cost = cost_;
  found_.stats.priced_bound = found_.lower_bound;
  if (!proven()) search();
  finish();
  return std::move(found_);
}

void Within::search() {
  best_->look_back(*tree_);
  size_t front = limits_.front;
  double share = 0.25;  // of the gap, below which plans are looked for
  double reach = 0.01;  // of the lower bound, where no plan is known
  for (int i = 0; i < most_searches && !proven() && !late(); ++i) {
    const double bound = found_.lower_bound, cost = cost_;
    double below = share >= 1 ? cost_ : std::max(bound + share * (cost_ - bound), (1 + limits_.epsilon) * bound);
    if (cost_ == infinity) below = i < 6 ? bound * (1 + reach) + 1e-300 : infinity;
    below = std::min(below, cost_);
    reach *= 4;
    const bool lossy = !search_below(below, front);
    found_.stats.searches += 1;
    if (aborted_) return;
    if (lossy && front >= limits_.largest_front) return;
    if (lossy) front *= 4;
    const bool unchanged = cost_ == cost && found_.lower_bound == bound;
    if (cost_ == infinity && below == infinity && !lossy) return;
    if (unchanged && below == cost && !lossy) return;
    share *= 2;
  }
}

double Within::slack(const Cut& cut, double least) {
  if (least == infinity) return -infinity;
  return cut.most == infinity ? infinity : cut.most + 1e2 * rounding * cut.most - least;
}

template <typename Least>
void Within::multiply(Front& front, const Front& other, std::vector<double>& least, const std::vector<double>& slacks,
                      const Least& least_of) {
  for (size_t c = 0; c < cuts_.size(); ++c) least[c] += least_of(c);
  if (other.size() == 1 && other[0].part == 0 && other[0].loss == 0 && other[0].amounts == Amounts{}) return;
  Front product;
  for (const Label& a : front) {
    for (const Label& b : other) {
      Label sum{a.amounts, a.loss + b.loss, a.part, b.part};
      for (size_t k = 0; k < sum.amounts.size(); ++k) sum.amounts[k] += b.amounts[k];
      bool kept = true;
      for (size_t c = 0; c < cuts_.size() && kept; ++c) {
        const double over = dot(sum.amounts, cuts_[c].priced->weights) - least[c] - slacks[c];
        kept = !(over > 0);
        if (!kept && c == 0 && sum.loss > 0) dropped_ = std::min(dropped_, below_ + over - sum.loss);
      }
      if (kept) product.push_back(sum);
    }
  }
  work_ += front.size() * other.size();
  if (front.size() > 1 && other.size() > 1) keep_front(product, bounds_.size());
  for (Label& label : product) label.part = parts_.join(label.part, label.with), label.with = 0;
  found_.stats.labels += product.size();
  front = std::move(product);
  aborted_ = aborted_ || parts_.joints() > limits_.most_labels || late();
}

void Within::eliminate(size_t i) {
  const Bucket& bucket = tree_->buckets()[i];
  std::vector<Front>& sent = sent_[i];
  sent.assign(bucket.sends, {});
  std::vector<double> slacks(cuts_.size()), least(cuts_.size());
  Front joint;
  size_t last = 0;
  Tree::walk(bucket, [&](size_t entry, int, const std::vector<size_t>& offsets) {
    if (aborted_) return;
    if (entry != last) settle(i, last), last = entry;
    for (size_t c = 0; c < cuts_.size(); ++c) {
      double sum = cuts_[c].priced->beyond[i][entry];
      for (size_t s = 0; s < offsets.size(); ++s) sum += cuts_[c].priced->table(bucket.summands[s])[offsets[s]];
      slacks[c] = slack(cuts_[c], sum);
      if (slacks[c] < 0) return;
    }
    joint.assign(1, {});
    std::fill(least.begin(), least.end(), 0);
    for (size_t s = 0; s < offsets.size() && !joint.empty(); ++s) {
      const Summand& summand = bucket.summands[s];
      const auto index = static_cast<size_t>(summand.index);
      const Front& front = (summand.sent ? sent_[index] : graph_.factors[index].table)[offsets[s]];
      multiply(joint, front, least, slacks, [&](size_t c) { return cuts_[c].priced->table(summand)[offsets[s]]; });
    }
    sent[entry].insert(sent[entry].end(), joint.begin(), joint.end());
  });
  if (!aborted_) settle(i, last);
}

bool Within::search_below(double below, size_t front) {
  below_ = below;
  dropped_ = infinity;
  lossy_ = false;
  front_ = front;
  cuts_ = {{best_.get(), below + allowed(best_->weights)}};
  for (size_t k = 0; k < least_.size(); ++k) cuts_.push_back({least_[k].get(), bounds_[k].most});
  const size_t joints = parts_.joints();
  const auto& buckets = tree_->buckets();
  std::vector<double> slacks(cuts_.size());
  for (size_t c = 0; c < cuts_.size(); ++c) slacks[c] = slack(cuts_[c], cuts_[c].priced->total);
  sent_.assign(buckets.size(), {});
  Front whole = graph_.constant;
  std::vector<double> least_of_whole(cuts_.size());
  for (size_t c = 0; c < cuts_.size(); ++c) least_of_whole[c] = cuts_[c].priced->constant;
  for (size_t i = 0; i < buckets.size() && !aborted_; ++i) {
    eliminate(i);
    for (const Summand& summand : buckets[i].summands) {
      if (summand.sent) sent_[static_cast<size_t>(summand.index)].clear();
    }
    if (buckets[i].parent >= 0) continue;
    multiply(whole, sent_[i][0], least_of_whole, slacks, [&](size_t c) { return cuts_[c].priced->sent[i][0]; });
  }
  if (aborted_) return true;
  double least = std::min(below, dropped_);
  for (const Label& label : whole) {
    bool near = true;
    for (size_t k = 0; k < bounds_.size(); ++k) near &= label.amounts[k + 1] <= bounds_[k].most * (1 + rounding);
    if (near) least = std::min(least, label.amounts[0] - label.loss);
  }
  std::sort(whole.begin(), whole.end(), [](const Label& a, const Label& b) { return a.amounts < b.amounts; });
  for (const Label& label : whole) {
    if (note(label)) break;
  }
  parts_.shrink(joints);
  found_.lower_bound = std::max(found_.lower_bound, std::min(least, cost_));
  return !(lossy_ && least < std::min(below, cost_) * (1 - rounding));
}

void Within::settle(size_t i, size_t entry) {
  Front& front = sent_[i][entry];
  keep_front(front, bounds_.size());
  if (front.size() <= front_) return;
  lossy_ = true;
  thin(front, bounds_.size(), front_);
  if (front.size() <= 2 * front_) return;
  // Of several bounds each may have a label of its own; then those go that promise least.
  const Priced& priced = *cuts_[0].priced;
  const auto promise = [&](const Label& label) { return dot(label.amounts, priced.weights); };
  std::stable_sort(front.begin(), front.end(), [&](const Label& a, const Label& b) { return promise(a) < promise(b); });
  for (size_t l = 2 * front_; l < front.size(); ++l) {
    const double bound = promise(front[l]) + priced.beyond[i][entry] - allowed(priced.weights);
    dropped_ = std::min(dropped_, bound - front[l].loss);
  }
  front.resize(2 * front_);
}

void Within::finish() {
  if (cost_ == infinity) return;
  DprsResult& plan = found_.plan.emplace();
  plan.choices.resize(problem_.layers.size());
  Assignment values(graph_.domains.size(), 0);
  for (const Leaf& leaf : leaves_) {
    if (leaf.layer >= 0) values[static_cast<size_t>(leaf.layer)] = leaf.value;
    if (leaf.choice.label >= 0) plan.choices[static_cast<size_t>(leaf.layer)] = leaf.choice;
    if (leaf.choice.group < 0) continue;
    for (const DprsCover& cover : problem_.groups[static_cast<size_t>(leaf.choice.group)].covers) {
      plan.choices[static_cast<size_t>(cover.layer)] = leaf.choice;
    }
  }
  for (int blob = 0; blob < problem_.blobs; ++blob) add_chains(blob, model_.wanted(blob, values), plan);
  plan.cost = cost_;
  plan.lower_bound = found_.lower_bound = std::min(found_.lower_bound, cost_);
  plan.exact = plan.gap() <= rounding * cost_;
  plan.stats.variables = static_cast<int>(graph_.domains.size());
  plan.stats.largest_table = order_.largest;
  plan.stats.table_entries = order_.total;
}

void Within::add_chains(int blob, const std::vector<int>& wanted, DprsResult& plan) const {
  std::vector<char> present(static_cast<size_t>(problem_.schemas), 0);
  for (const int schema : wanted) {
    for (const Leaf& leaf : leaves_) {
      if (leaf.blob != blob || leaf.chain.back() != schema) continue;
      present[static_cast<size_t>(leaf.chain.front())] = 1;
      for (size_t i = 1; i < leaf.chain.size(); ++i) {
        const int from = leaf.chain[i - 1], to = leaf.chain[i];
        if (present[static_cast<size_t>(to)]) continue;
        present[static_cast<size_t>(to)] = 1;
        const auto edge = static_cast<size_t>(from * problem_.schemas + to);
        plan.adapts.push_back({blob, from, to, problem_.adapts[static_cast<size_t>(blob)][edge]});
      }
    }
  }
}

}  // namespace dprs

WithinBounds dprs_within(const DprsProblem& problem, const std::vector<Bound>& bounds, const LabelLimits& limits) {
  if (bounds.size() > dprs::most_bounds) {
    throw Error(
        "there may be at most " + std::to_string(dprs::most_bounds) + " bounds, not " + std::to_string(bounds.size()),
        "dprs");
  }
  return dprs::Within(problem, bounds, limits).run();
}

}  // namespace softneuro
