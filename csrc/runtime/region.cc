#include "runtime/region.h"

#include <atomic>
#include <exception>
#include <mutex>
#include <utility>

#include "base/log.h"
#include "layers/host/host.h"
#include "runtime/telling.h"

namespace softneuro {
namespace {

// Preparations one after the other that changed weights may ask for, no net having run between, before they draw on the
// credit like others.
constexpr int changes_borne = 16;
constexpr auto weights_change = "its weights change at every call";

// Here and not in the class, of which every library that includes it would have its own.
std::atomic<int> first_sights_paused{0};

}  // namespace

Region::Shape& Region::shape_of(const Signature& signature) {
  if (const auto known = by_signature_.find(signature); known != by_signature_.end()) {
    items_.splice(items_.end(), items_, known->second);
    return known->second->shape;
  }
  if (items_.size() >= most_shapes) {
    by_signature_.erase(std::span<const int64_t>(items_.front().signature));
    items_.pop_front();
  }
  items_.push_back({signature, {}});
  by_signature_[items_.back().signature] = std::prev(items_.end());
  return items_.back().shape;
}

void Region::pause_first_sights(bool pause) { first_sights_paused += pause ? 1 : -1; }

bool Region::first_sight(std::span<const int64_t> signature) {
  if (!options().never_worse || first_sights_paused > 0 || watches_) return false;
  const std::unique_lock lock(mutex_);
  if (!has_host_ || untried() || held_up_ || by_signature_.contains(signature)) return false;
  shape_of({signature.begin(), signature.end()}).sights = 1;
  return true;
}

ShapeState Region::state_of(const Shape& shape) {
  ShapeState state = shape;
  if (state.plan == nullptr) state.plan = shape.carried.lock();
  return state;
}

void Region::set_state(Shape& shape, ShapeState state) {
  static_cast<ShapeState&>(shape) = std::move(state);
  if (shape.plan == nullptr || !shape.plan->result.carried) return;
  shape.carried = shape.plan;
  shape.plan = nullptr;
}

Region::Decision Region::decide(const Signature& signature, const WeightSet& weights, bool at_once) {
  const std::unique_lock lock(mutex_);
  Decision decision = decide_now(signature, weights, at_once);
  decision.generation = generation_;
  return decision;
}

Region::Decision Region::decide_now(const Signature& signature, const WeightSet& weights, bool at_once) {
  Shape& shape = shape_of(signature);
  const auto packed = packed_.find(weights.identity);
  const bool written = packed != packed_.end() && packed->second < weights.epoch;
  if (written) packed_.erase(packed), dropped_ = true;
  if (!shape.host.empty()) {
    ++uses_;
    return {Turn::instead, nullptr, false, written};
  }
  if (NetCache::Entry net = nets_.peek(signature, weights)) {
    ++uses_;
    if (!net->on_trial) return {Turn::net, std::move(net), false};
    // A net that loses costs something, too.
    const bool host = shape.host_s.size() <= shape.net_s.size() || credit_ns() <= 0;
    const Turn turn = host ? Turn::host : Turn::net;
    return {turn, std::move(net), true};
  }
  if (at_once || !has_host_ || untried()) return {Turn::prepare, nullptr, false, written};
  // A shape whose graph has no plan costs more than packing anew.
  if (dropped_ && !packed_.contains(weights.identity) && !unplanned_.has(shape.mark)) {
    const bool idle = nets_.hits() + uses_ == uses_before_;
    changes_ = idle ? changes_ + 1 : 0;
    const bool held_up = std::exchange(held_up_, changes_ >= changes_borne);
    if (!held_up_) return {Turn::prepare, nullptr, false, written};
    if (!held_up) {
      log_warning("region '" + settings_.name + "': the host runs it for now: " + weights_change +
                  "; refresh(model) ends that");
      return {Turn::host, nullptr, true, written};
    }
  } else if (!options().never_worse) {
    return {Turn::prepare, nullptr, false, written};
  }
  if (affordable(signature, weights, shape)) return {Turn::prepare, nullptr, false, written};
  return {Turn::host, nullptr, true, written};
}

int64_t Region::run_timed_host(RegionCall& call) {
  const int64_t start = settings_.now();
  call.run_host();
  const int64_t ns = settings_.now() - start;
  credit_.host_ran(ns);
  return ns;
}

Region::Side Region::run(const Signature& signature, const WeightSet& weights, RegionCall& door) {
  Telling call(door);
  try {
    if (watches_) {
      if (const auto side = watch(signature, weights, call)) return *side;
    }
    const Decision decision = decide(signature, weights, !call.has_values() || call.anew());
    if (decision.drop) nets_.drop_before(weights);
    switch (decision.turn) {
      case Turn::instead:
        if (nets_.peek(signature, weights) == nullptr) {  // it had to make room
          put({.signature = signature, .net = nullptr, .orders = {}}, decision.generation);
        }
        call.run_instead();
        return Side::host;
      case Turn::host: {
        const int64_t ns = run_timed_host(call);
        if (decision.net == nullptr) {
          note_host(signature, weights, ns);
        } else {
          note_trial(signature, Side::host, ns, decision, call.threads());
        }
        return Side::host;
      }
      case Turn::net: {
        const int64_t start = settings_.now();
        try {
          call.run_net(*decision.net);
        } catch (const HostStepError&) {
          run_after_error(signature, call);
          return Side::host;
        }
        const int64_t ns = settings_.now() - start;
        if (decision.tries) note_trial(signature, Side::net, ns, decision, call.threads());
        return Side::net;
      }
      case Turn::prepare:
        break;
    }
    return prepare_and_run(signature, weights, call);
  } catch (const HostRaised& raised) {
    std::rethrow_exception(raised.error);
  } catch (const NoHost& none) {
    log_info("region '" + settings_.name + "' has no host to compare with: " + none.what());
    {
      const std::unique_lock lock(mutex_);
      has_host_ = false;
    }
    return prepare_and_run(signature, weights, call);
  }
}

void Region::run_after_error(const Signature& signature, RegionCall& call) {
  const uint64_t generation = generation_;
  call.run_host();  // raises the same, most likely
  ShapeState state;
  state.inputs = call.inputs();
  state.host = "a step of the host raised in the net, and not outside of it";
  log_warning("region '" + settings_.name + "': no net of it runs for inputs " + state.inputs + ": " + state.host);
  keep_host(signature, std::move(state), 0, generation);
}

Region::Side Region::prepare_and_run(const Signature& signature, const WeightSet& weights, RegionCall& call) {
  std::unique_lock preparing(preparing_, std::defer_lock);
  if (!preparing.try_lock()) {
    // Another thread is at it, which may take as long as tuning.
    if (options().never_worse && has_host_ && call.has_values()) {
      run_timed_host(call);
      return Side::host;
    }
    preparing.lock();
  }
  if (watches_ && has_host_ && call.has_values()) {  // since this call has begun: a net would keep others from view
    run_timed_host(call);
    return Side::host;
  }
  NetCache::Entry net = nets_.peek(signature, weights);
  if (net != nullptr && call.has_values()) {  // made meanwhile
    if (net->net == nullptr) return call.run_instead(), Side::host;
    return call.run_net(*net), Side::net;
  }
  return prepare_now(signature, weights, call);
}

NetCache::Entry Region::prepare(const Signature& signature, const WeightSet& weights, RegionCall& door) {
  Telling call(door);
  const std::unique_lock preparing(preparing_);
  if (NetCache::Entry net = nets_.peek(signature, weights)) return net;
  if (watches_ && waits_for_calls(call)) return nullptr;
  try {
    prepare_now(signature, weights, call);
  } catch (const HostRaised& raised) {
    std::rethrow_exception(raised.error);
  }
  return nets_.peek(signature, weights);
}

void Region::put(Ready ready, uint64_t generation) {
  const Signature signature = ready.signature;
  nets_.put(std::move(ready));
  if (generation_ != generation) nets_.drop(signature);
}

void Region::keep_host(const Signature& signature, ShapeState state, double host_s, uint64_t generation) {
  {
    const std::unique_lock lock(mutex_);
    if (generation_ != generation) return;
    Shape& shape = shape_of(signature);
    set_state(shape, std::move(state));
    shape.host_s = shape.net_s = {};
  }
  put({.signature = signature, .net = nullptr, .orders = {}, .earns_ns = Credit::tenth(ns_of(host_s))}, generation);
}

void Region::keep_net(Ready ready, ShapeState state, uint64_t generation) {
  {
    const std::unique_lock lock(mutex_);
    if (generation_ != generation) return;
    Shape& shape = shape_of(ready.signature);
    set_state(shape, std::move(state));
    shape.seen.clear();
    packed_[ready.weights.identity] = ready.weights.epoch;
    dropped_ = false;
  }
  put(std::move(ready), generation);
}

std::vector<std::pair<Signature, ShapeState>> Region::shapes() const {
  const std::shared_lock lock(mutex_);
  std::vector<std::pair<Signature, ShapeState>> found;
  for (const Item& item : items_) found.emplace_back(item.signature, state_of(item.shape));
  return found;
}

void Region::restore(const Signature& signature, Plan plan, std::string host) {
  {
    const std::unique_lock lock(mutex_);
    shape_of(signature).restored = std::move(plan);
  }
  if (host.empty()) return;
  ShapeState state;
  state.host = std::move(host);
  keep_host(signature, std::move(state), 0, generation_);
}

NetCache::Entry Region::find_at(std::span<const int64_t> signature, const WeightTable::Addresses& addresses) const {
  const std::optional<WeightSet> weights = weights_.look(addresses);
  return weights ? find(signature, *weights) : nullptr;
}

void Region::add_weights(WeightTable::Addresses addresses, std::shared_ptr<WatchedWeights> weights) {
  weights_.add(std::move(addresses), std::move(weights));
}

void Region::drop_weights(uint64_t identity) {
  weights_.drop(identity);
  {
    const std::unique_lock lock(mutex_);
    dropped_ |= packed_.erase(identity) > 0;
  }
  nets_.drop_before({identity, UINT64_MAX});
}

void Region::clear() {
  {
    const std::unique_lock lock(mutex_);
    packed_.clear();
  }
  nets_.clear();
}

OutsideCounts::Found Region::outside() const {
  std::shared_ptr<const OutsideCounts> counts;
  {
    const std::shared_lock lock(mutex_);
    counts = outside_;
  }
  return counts->found();
}

void Region::start_afresh() {
  const std::unique_lock lock(mutex_);
  changes_ = 0;
  held_up_ = false;
}

std::string Region::held_up() const {
  const std::shared_lock lock(mutex_);
  return held_up_ ? weights_change : "";
}

}  // namespace softneuro
