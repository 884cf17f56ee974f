// A region's credit: which attempts to prepare are begun, and when the host is not to ask again.
#include <algorithm>
#include <mutex>
#include <string>
#include <utility>

#include "base/log.h"
#include "runtime/making.h"
#include "runtime/telling.h"

namespace softneuro {
namespace {

constexpr size_t most_weight_sets = 256;  // noted for a signature
// Share of the host's time that a shape is taken to save at least: as much as its own calls put into the credit.
constexpr double least_gain = 0.1;
constexpr int64_t layer_ns = 1'000'000;  // that planning takes by layer, before it is known

int& count_of(std::vector<std::pair<uint64_t, int>>& counts, uint64_t identity) {
  const auto known = std::find_if(counts.begin(), counts.end(), [&](const auto& c) { return c.first == identity; });
  return known != counts.end() ? known->second : counts.emplace_back(identity, 0).second;
}

}  // namespace

Price Region::price_of_plan(int layers) const {
  const Price one = plan_cost_.is_known() ? plan_cost_.price() : Price{layer_ns, layer_ns};
  return {layers * one.typical, layers * one.at_most};
}

Region::Due Region::due(const Signature& signature, const WeightSet& weights, const Shape& shape) {
  Due due;
  const bool has_plan = shape.mark == 0 && shape.stats.has_value();
  if (!has_plan) due.waiting = unplanned_.find(shape.mark, signature);
  if (due.waiting != nullptr) due.plan = price_of_plan(due.waiting->layers);
  // Another plan has packings of its own.
  const bool packed = due.waiting == nullptr && packed_.contains(weights.identity);
  due.rest = (packed ? shape_cost_ : weights_cost_).price();
  due.saved = unplanned_.saved(due.waiting);
  return due;
}

bool Region::affordable(const Signature& signature, const WeightSet& weights, Shape& shape) {
  if (shape.seen.size() > most_weight_sets) shape.seen.clear();
  const int seen = ++count_of(shape.seen, weights.identity) + shape.sights;
  if (seen < 2) return false;
  const Due due = this->due(signature, weights, shape);
  // As often as it has come it is taken to come again: then it has to pay.
  const double gain = std::max(gain_, least_gain);
  const double host_s =
      shape.host_s.empty() ? shape.verdict.host_seconds : *std::min_element(shape.host_s.begin(), shape.host_s.end());
  if (host_s == 0 && shape.sights > 0) return false;  // there is a time after this call
  if (host_s > 0 && seen * gain * host_s < seconds_of(due.rest.typical)) return false;
  if (due.waiting != nullptr && gain * due.waiting->host_s < seconds_of(due.plan.typical)) return false;
  const bool pays = credit_ns() >= due.credit();
  if (due.waiting != nullptr && !pays) unplanned_.save(*due.waiting, due.plan.at_most + due.rest.at_most);
  return pays;
}

// Until a net may pay, the host runs so many calls without the region being asked.
int Region::calls_to_leave(const Due& due, Shape& shape, const WeightSet& weights) const {
  constexpr double longest = 16;
  if (held_up_) return 0;
  const double gain = std::max(gain_, least_gain);
  const double host_s = *std::min_element(shape.host_s.begin(), shape.host_s.end());
  int& seen = count_of(shape.seen, weights.identity);
  double pays = seconds_of(due.rest.typical) / (gain * host_s) - seen;
  if (due.waiting != nullptr) {
    pays = std::max(pays, (seconds_of(due.plan.typical) / gain - due.waiting->host_s) / host_s);
  }
  const double affords = seconds_of(std::max<int64_t>(due.credit() - credit_ns(), 0)) / (0.1 * host_s);
  const int calls = std::max(static_cast<int>(std::min(std::max(pays, affords) - 1, longest)), 0);
  seen += calls;
  return calls;
}

// After a call that no net was there for.
void Region::note_host(const Signature& signature, const WeightSet& weights, int64_t ns) {
  double host_s = 0;
  int calls = 0;
  uint64_t generation = 0;
  {
    const std::unique_lock lock(mutex_);
    generation = generation_;
    Shape& shape = shape_of(signature);
    if (!shape.host.empty()) return;
    if (shape.host_s.size() < most_trial_calls) shape.host_s.push_back(seconds_of(ns));
    host_s = *std::min_element(shape.host_s.begin(), shape.host_s.end());
    const Due due = this->due(signature, weights, shape);
    calls = calls_to_leave(due, shape, weights);
    unplanned_.host_ran(due.waiting, host_s * (1 + calls));
  }
  if (calls == 0) return;
  put({.signature = signature,
       .net = nullptr,
       .orders = {},
       .patience = calls,
       .earns_ns = Credit::tenth(ns_of(host_s))},
      generation);
}

void Region::note_planning(const Graph& graph, int64_t ns) {
  const std::unique_lock lock(mutex_);
  plan_cost_.add(ns / std::max<int64_t>(static_cast<int64_t>(graph.layers().size()), 1));
}

// What a preparation tells of the prices of others. The first one of a region has told them itself.
void Region::note_price(const Making& making, int64_t spent) {
  if (!making.has_net) return;
  const std::unique_lock lock(mutex_);
  unplanned_.planned(making.mark);
  if (making.first) return;
  const int64_t rest = spent - making.planning_ns;
  shape_cost_.add(std::max<int64_t>(rest - ns_of(making.state.stats->packing_s), 0));
  weights_cost_.add(rest);
}

// Whether a plan may be chosen anew for its graph, after what has been spent already.
bool Region::may_plan(const Graph& graph, Making& making) {
  making.mark = Unplanned::mark_of(structure_of(graph, patterns_of(graph), options(), making.call.threads()));
  const int64_t spent = settings_.now() - making.start;
  const std::unique_lock lock(mutex_);
  if (!has_host_) return true;
  const Price plan = price_of_plan(static_cast<int>(graph.layers().size()));
  const int64_t rest = std::max<int64_t>(weights_cost_.price().at_most - spent, 0);
  return credit_ns() - spent >= plan.at_most + rest + unplanned_.saved(unplanned_.find(making.mark, {}));
}

// Its shape is not lowered again before there is credit for a plan, too.
void Region::note_unplanned(const Making& making, const Graph& graph) {
  bool is_new = false;
  {
    const std::unique_lock lock(mutex_);
    Shape& shape = shape_of(making.signature);
    shape.mark = making.mark;
    is_new = !unplanned_.has(making.mark);
    Unplanned::Item& item = unplanned_.add(making.mark, static_cast<int>(graph.layers().size()), making.signature);
    if (is_new && !shape.host_s.empty()) {
      item.host_s =
          count_of(shape.seen, making.weights.identity) * *std::min_element(shape.host_s.begin(), shape.host_s.end());
    }
  }
  if (!is_new) return;
  log_info("region '" + settings_.name + "': no plan fits the graph for inputs " + making.state.inputs +
           ", and the host runs it until a new one is paid for");
}

}  // namespace softneuro
