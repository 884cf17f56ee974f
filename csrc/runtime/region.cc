#include "runtime/region.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <exception>
#include <mutex>
#include <utility>

#include "base/log.h"
#include "layers/host/host.h"
#include "tune/plan_graph.h"

namespace softneuro {
namespace {

// Calls of either side that a verdict needs, and where they are close.
constexpr size_t trial_calls = 3, close_trial_calls = 7;
// Preparations one after the other that changed weights may ask for, no net having run between, before they draw on the
// credit like others.
constexpr int changes_borne = 16;
constexpr auto weights_change = "its weights change at every call";
constexpr size_t most_weight_sets = 256;        // noted for a signature
constexpr double least_gain = 0.05;             // share of the host's time that a shape is taken to save, at least
constexpr int64_t least_plan_ns = 200'000'000;  // that choosing anew is taken to cost, before it is known

// What the host has raised: the caller's.
struct HostRaised {
  std::exception_ptr error;
};

// The call, with the host's own exceptions told from all others.
class Telling : public RegionCall {
 public:
  explicit Telling(RegionCall& call) : call_(call) {}
  LoweredCall lower() override { return call_.lower(); }
  void run_host() override {
    run([&] { call_.run_host(); });
  }
  void run_instead() override {
    run([&] { call_.run_instead(); });
  }
  void run_net(const Ready& ready) override { call_.run_net(ready); }
  double error(double max_error) override { return call_.error(max_error); }
  int threads() const override { return call_.threads(); }
  bool has_values() const override { return call_.has_values(); }
  bool open_shapes() const override { return call_.open_shapes(); }
  std::string declined() const override { return call_.declined(); }
  bool anew() const override { return call_.anew(); }
  void progress(int done, int total) override { call_.progress(done, total); }
  std::string inputs() const override { return call_.inputs(); }

 private:
  template <typename Run>
  static void run(const Run& run) {
    try {
      run();
    } catch (const NoHost&) {
      throw;
    } catch (...) {
      throw HostRaised{std::current_exception()};
    }
  }

  RegionCall& call_;
};

double middle(std::vector<double> values) {
  const auto at = values.begin() + static_cast<ptrdiff_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

// Whether not even the best of a few runs is near the host's.
bool loses_clearly(const std::vector<double>& net_s, const std::vector<double>& host_s) {
  if (net_s.size() < 2 || host_s.empty()) return false;
  return *std::min_element(net_s.begin(), net_s.end()) > 2 * *std::min_element(host_s.begin(), host_s.end());
}

double seconds_of(int64_t ns) { return std::max(1e-9 * static_cast<double>(ns), 1e-9); }
int64_t ns_of(double seconds) { return static_cast<int64_t>(1e9 * seconds); }

// The most that a plan may err after one that was too inexact on real inputs, which may magnify errors further than
// those that it was tuned on; nothing if that cannot help.
std::optional<double> tighter(const Verdict& found, double allowed, const Options& options) {
  const bool helps = options.max_error < found.error && std::isfinite(found.error) && options.plan.empty();
  if (!helps || allowed < options.max_error / 100) return std::nullopt;
  return allowed * std::max(0.5 * options.max_error / found.error, 0.1);
}

}  // namespace

Region::Region(RegionSettings settings) : settings_(std::move(settings)) {}

Region::Shape& Region::shape_of(const Signature& signature) {
  if (const auto known = by_signature_.find(signature); known != by_signature_.end()) {
    items_.splice(items_.end(), items_, known->second);
    return known->second->shape;
  }
  if (items_.size() >= most_shapes) {
    by_signature_.erase(items_.front().signature);
    items_.pop_front();
  }
  items_.push_back({signature, {}});
  by_signature_[signature] = std::prev(items_.end());
  return items_.back().shape;
}

bool Region::affordable(uint64_t weight_set, Shape& shape) {
  if (shape.seen.size() > most_weight_sets) shape.seen.clear();
  const int seen = ++shape.seen[weight_set];
  const CostGuess& cost = packed_.contains(weight_set) ? shape_cost_ : weights_cost_;
  if (seen < 2 || credit_ns() < cost.at_most()) return false;
  // As often as it has come it is taken to come again: then it has to pay.
  const double host_s =
      shape.host_s.empty() ? shape.verdict.host_seconds : *std::min_element(shape.host_s.begin(), shape.host_s.end());
  return host_s == 0 || seen * gain_ * host_s >= seconds_of(cost.typical());
}

void Region::note_gain(const Verdict& verdict) {
  if (!verdict.known || !(verdict.error <= settings_.options.max_error)) return;
  const double gain = std::clamp(1 - verdict.seconds / verdict.host_seconds, least_gain, 1.0);
  gain_ = 0.8 * gain_ + 0.2 * gain;
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

Region::Decision Region::decide(const Signature& signature, uint64_t weight_set, bool at_once) {
  const std::unique_lock lock(mutex_);
  Shape& shape = shape_of(signature);
  if (!shape.host.empty()) {
    ++uses_;
    if (nets_.peek(signature, weight_set) == nullptr) {  // it had to make room
      nets_.put({.signature = signature, .weights = {}, .net = nullptr, .orders = {}});
    }
    return {Turn::instead, nullptr, false};
  }
  if (NetCache::Entry net = nets_.peek(signature, weight_set)) {
    ++uses_;
    if (!net->on_trial) return {Turn::net, std::move(net), false};
    // A net that loses costs something, too.
    const bool host = shape.host_s.size() <= shape.net_s.size() || credit_ns() <= 0;
    const Turn turn = host ? Turn::host : Turn::net;
    return {turn, std::move(net), true};
  }
  if (at_once || !has_host_ || untried()) return {Turn::prepare, nullptr, false};
  if (nets_.has(signature, weight_set)) dropped_ |= packed_.erase(weight_set) > 0;  // written to
  if (dropped_ && !packed_.contains(weight_set)) {
    const bool idle = nets_.hits() + uses_ == uses_before_;
    changes_ = idle ? changes_ + 1 : 0;
    const bool held_up = std::exchange(held_up_, changes_ >= changes_borne);
    if (!held_up_) return {Turn::prepare, nullptr, false};
    if (!held_up) {
      log_warning("region '" + settings_.name + "': the host runs it for now: " + weights_change +
                  "; refresh(model) ends that");
      nets_.drop_weight_set(weight_set);
    }
  } else if (!settings_.options.never_worse) {
    return {Turn::prepare, nullptr, false};
  }
  if (affordable(weight_set, shape)) return {Turn::prepare, nullptr, false};
  return {Turn::host, nullptr, true};
}

int64_t Region::run_timed_host(RegionCall& call) {
  const int64_t start = settings_.now();
  call.run_host();
  const int64_t ns = settings_.now() - start;
  credit_.host_ran(ns);
  return ns;
}

Region::Side Region::run(const Signature& signature, uint64_t weight_set, RegionCall& door) {
  Telling call(door);
  try {
    const Decision decision = decide(signature, weight_set, !call.has_values() || call.anew());
    switch (decision.turn) {
      case Turn::instead:
        call.run_instead();
        return Side::host;
      case Turn::host: {
        const int64_t ns = run_timed_host(call);
        note_trial(signature, Side::host, ns, decision.net, call.threads());
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
        if (decision.tries) note_trial(signature, Side::net, ns, decision.net, call.threads());
        return Side::net;
      }
      case Turn::prepare:
        break;
    }
    return prepare_and_run(signature, weight_set, call);
  } catch (const HostRaised& raised) {
    std::rethrow_exception(raised.error);
  } catch (const NoHost& none) {
    log_info("region '" + settings_.name + "' has no host to compare with: " + none.what());
    {
      const std::unique_lock lock(mutex_);
      has_host_ = false;
    }
    return prepare_and_run(signature, weight_set, call);
  }
}

void Region::run_after_error(const Signature& signature, RegionCall& call) {
  call.run_instead();  // raises the same, most likely
  ShapeState state;
  state.inputs = call.inputs();
  state.host = "a step of the host raised in the net, and not outside of it";
  log_warning("region '" + settings_.name + "': no net of it runs for inputs " + state.inputs + ": " + state.host);
  keep_host(signature, std::move(state), 0);
}

Region::Side Region::prepare_and_run(const Signature& signature, uint64_t weight_set, RegionCall& call) {
  std::unique_lock preparing(preparing_, std::defer_lock);
  if (!preparing.try_lock()) {
    // Another thread is at it, which may take as long as tuning.
    if (settings_.options.never_worse && has_host_ && call.has_values()) {
      run_timed_host(call);
      return Side::host;
    }
    preparing.lock();
  }
  NetCache::Entry net = nets_.peek(signature, weight_set);
  if (net != nullptr && call.has_values()) {  // made meanwhile
    if (net->net == nullptr) return call.run_instead(), Side::host;
    return call.run_net(*net), Side::net;
  }
  return prepare_now(signature, weight_set, call);
}

NetCache::Entry Region::prepare(const Signature& signature, uint64_t weight_set, RegionCall& door) {
  Telling call(door);
  const std::unique_lock preparing(preparing_);
  if (NetCache::Entry net = nets_.peek(signature, weight_set)) return net;
  try {
    prepare_now(signature, weight_set, call);
  } catch (const HostRaised& raised) {
    std::rethrow_exception(raised.error);
  }
  return nets_.peek(signature, weight_set);
}

SharedPlan Region::choose_plan(const Graph& graph, const ShapeState& known, const Plan& restored, double allowed,
                               bool first, RegionCall& call) {
  Options options = settings_.options;
  options.max_error = allowed;
  const int threads = call.threads();
  if (!call.anew()) {
    if (restored.key == plan_key(graph, threads)) {
      return std::make_shared<const KnownPlan>(
          KnownPlan{graph.structural_hash(), tune_settings(options, threads), from_plan(graph, restored)});
    }
    // Its net had to make room, or its weights have changed.
    const bool same = known.plan != nullptr && known.plan->graph_hash == graph.structural_hash();
    if (same && options.plan.empty() && allowed == settings_.options.max_error) return known.plan;
    if (SharedPlan near = near_plan(graph, options, threads)) return near;
  }
  if (first || call.anew() || !settings_.options.never_worse) {
    SharedPlan made = new_plan(graph, options, threads, [&](int done, int total) { call.progress(done, total); });
    char text[160];
    const TuneResult& result = made->result;
    std::snprintf(
        text, sizeof(text),
        "planned %zu layers in %.2f s: %.3f ms predicted, %.3f ms at best; %d costs measured, %d recalled, %d "
        "guessed",
        result.layers.size(), result.tuning_s, 1e3 * result.predicted_s, 1e3 * result.lower_bound_s, result.measured,
        result.recalled, result.guessed);
    log_info("region '" + settings_.name + "': " + text);
    return made;
  }
  // Shapes that change the graph, too: of what is known of its layers, without measuring.
  if (credit_ns() < std::max(plan_cost_.at_most(), least_plan_ns)) return nullptr;
  if (options.tune == TuneMode::profile) options.tune = TuneMode::cached;
  const int64_t start = settings_.now();
  SharedPlan made = new_plan(graph, options, threads, {});
  plan_cost_.add(settings_.now() - start);
  return made;
}

// One signature while it is being prepared.
struct Region::Making {
  const Signature& signature;
  const uint64_t weight_set;
  RegionCall& call;
  ShapeState state;
  Plan restored;
  bool first = false;  // of the region
  std::optional<Graph> graph;
  bool apart = false;    // tuned and measured anew: it is not paid for
  bool has_run = false;  // the call, as `side` tells
  Side side = Side::host;
  int64_t host_ns = 0;  // of the host's run that gives the call's results
};

void Region::run_made(Making& making, Ready ready) {
  if (making.call.has_values()) {
    making.call.run_net(ready);
    making.side = Side::net;
    making.has_run = true;
  }
  keep_net(std::move(ready), making.state);
}

// Makes a net and says whether another is to be tried, for less of an error.
std::optional<double> Region::make_net(Making& making, double allowed) {
  RegionCall& call = making.call;
  ShapeState& state = making.state;
  const double max_error = settings_.options.max_error;
  const int threads = call.threads();
  const int64_t start = settings_.now();
  LoweredCall lowered = call.lower();
  const int64_t lowered_at = settings_.now();
  const SharedPlan plan = choose_plan(lowered.graph, state, making.restored, allowed, making.first, call);
  if (plan == nullptr) return std::nullopt;
  const int64_t planned_at = settings_.now();
  const bool inexact = allowed < max_error;  // the last one was too much so
  if (inexact && choices_of(*state.plan) == choices_of(*plan)) {
    state.host = state.verdict.reason;  // no other plan is to be had
    return std::nullopt;
  }
  const bool again = plan == state.plan && state.verdict.known;
  state.plan = plan;
  Ready ready{.signature = making.signature,
              .weights = std::move(lowered.weights),
              .weight_set = making.weight_set,
              .net = Net::prepare(lowered.graph, plan->result.assignment, threads, PackedCache::shared(), arenas_),
              .orders = std::move(lowered.orders),
              .door = std::move(lowered.door),
              .plan = plan};
  state.stats = ready.net->stats();
  if (making.first) {
    const int64_t packing = ns_of(state.stats->packing_s);
    int64_t cost = lowered_at - start + settings_.now() - planned_at - packing;
    if (call.open_shapes()) {  // the first time takes longer than others will
      const int64_t again_at = settings_.now();
      Net::prepare(call.lower().graph, plan->result.assignment, threads, PackedCache::shared(), arenas_);
      cost = settings_.now() - again_at;
    }
    const std::unique_lock lock(mutex_);
    shape_cost_.add(cost);
    weights_cost_.add(cost + packing);
  }
  making.graph = std::move(lowered.graph);
  std::string choices;
  {
    const std::unique_lock lock(mutex_);
    if (source_.empty() || !plan->result.carried) source_ = choices_of(*plan);
    choices = source_;
  }
  const bool judges = settings_.options.never_worse && settings_.options.tune != TuneMode::off;
  Verdict verdict = again ? state.verdict : judges ? recall(making.signature, choices, threads) : Verdict();
  const bool final = again || is_final(verdict, max_error);
  if (!final && measures() && has_host_ && call.has_values()) {
    if (plan->result.carried || !(making.first || call.anew())) {
      start_trial(std::move(ready), making);
      return std::nullopt;
    }
    making.apart = true;
    try {
      verdict = merged(verdict, compare(call, ready, {max_error, settings_.pause_ns, settings_.now}), max_error);
      if (std::isfinite(verdict.error)) remember(making.signature, choices, verdict, threads);
    } catch (const NoHost& none) {
      log_info("region '" + settings_.name + "' is not compared with the host: " + none.what());
      const std::unique_lock lock(mutex_);
      has_host_ = false;
    }
  }
  making.apart = making.apart || (making.first && !plan->result.carried);
  state.verdict = verdict;
  if (making.first && verdict.known) {  // of each shape to come, a run tells the error
    const std::unique_lock lock(mutex_);
    note_gain(verdict);
    shape_cost_.add(shape_cost_.at_most() + ns_of(verdict.seconds));
    weights_cost_.add(weights_cost_.at_most() + ns_of(verdict.seconds));
  }
  if (verdict.known && !verdict.wins) {
    const bool may_try = measures() && call.has_values() && making.first;
    if (const auto next = may_try ? tighter(verdict, allowed, settings_.options) : std::nullopt) return next;
    state.host = verdict.reason;
    return std::nullopt;
  }
  if (verdict.known) ready.earns_ns = Credit::earned(ns_of(verdict.seconds), ns_of(verdict.host_seconds));
  run_made(making, std::move(ready));
  return std::nullopt;
}

Region::Side Region::prepare_now(const Signature& signature, uint64_t weight_set, RegionCall& call) {
  const int64_t start = settings_.now();
  Making making{
      .signature = signature, .weight_set = weight_set, .call = call, .state = {}, .restored = {}, .graph = {}};
  ShapeState& state = making.state;
  std::string source;
  {
    const std::unique_lock lock(mutex_);
    const Shape& known = shape_of(signature);
    state = state_of(known);
    making.restored = known.restored;
    making.first = untried();
    ++attempts_;
    source = source_;
  }
  state.inputs = call.inputs();
  try {
    state.host = call.declined();
    if (state.host.empty() && !source.empty() && !state.verdict.known && settings_.options.never_worse) {
      const Verdict known = recall(signature, source, call.threads());
      if (is_final(known, settings_.options.max_error) && !known.wins) state.verdict = known, state.host = known.reason;
    }
    std::optional<double> allowed = settings_.options.max_error;
    while (state.host.empty() && allowed) {
      allowed = make_net(making, *allowed);
      if (allowed) log_info("region '" + settings_.name + "': " + state.verdict.reason + ", choosing again");
    }
  } catch (const PlanFileError&) {
    throw;  // the caller's to mend
  } catch (const CallersError&) {
    throw;
  } catch (const HostRaised&) {
    throw;  // the caller's, too: nothing is known yet of calls that do not raise
  } catch (const NoHost&) {
    throw;
  } catch (const HostStepError& error) {
    if (call.has_values()) call.run_host(), making.has_run = true;  // raises the same, most likely
    making.side = Side::host;
    state.host = "a step of the host raised in the net, and not outside of it";
    log_warning("region '" + settings_.name + "': no net of it runs for inputs " + state.inputs + ": " + error.what());
  } catch (const std::exception& error) {
    // Whatever went wrong, memory that ran out most likely: the host can still give the result.
    making.has_run = false;
    state.host = error.what();
    log_warning("region '" + settings_.name + "': the host runs it for inputs " + state.inputs + ": " + state.host);
  }
  if (!making.apart) {
    const int64_t spent = settings_.now() - start - making.host_ns;
    credit_.spend(spent);
    const std::unique_lock lock(mutex_);
    const int64_t packing = state.stats ? ns_of(state.stats->packing_s) : 0;
    if (!making.first) shape_cost_.add(std::max<int64_t>(spent - packing, 0)), weights_cost_.add(spent);
  }
  if (!state.host.empty()) {
    if (state.verdict.known) {
      log_info("region '" + settings_.name + "': the host runs it for inputs " + state.inputs + ": " + state.host);
    }
    keep_host(signature, state, state.verdict.host_seconds);
    if (call.has_values() && !making.has_run) call.run_instead();
    making.side = Side::host;
  } else if (call.has_values() && !making.has_run) {
    run_timed_host(call);
  }
  if (settings_.prepared) settings_.prepared(signature, state, making.graph ? &*making.graph : nullptr);
  const std::unique_lock lock(mutex_);
  uses_before_ = nets_.hits() + uses_;
  return making.side;
}

// Of a plan that was taken over: one run of each side tells its error, and the calls to come tell which is faster.
void Region::start_trial(Ready ready, Making& making) {
  ShapeState& state = making.state;
  making.host_ns = std::max<int64_t>(run_timed_host(making.call), 1);
  making.has_run = true;
  making.call.run_net(ready);
  state.verdict = {};
  state.verdict.error = making.call.error(settings_.options.max_error);
  if (!(state.verdict.error <= settings_.options.max_error)) {
    state.verdict.host_seconds = seconds_of(making.host_ns);
    state.verdict = judged(std::move(state.verdict), settings_.options.max_error);
    state.host = state.verdict.reason;
    return;
  }
  ready.on_trial = true;
  keep_net(std::move(ready), state);
  const std::unique_lock lock(mutex_);
  shape_of(making.signature).host_s.push_back(seconds_of(making.host_ns));
}

void Region::keep_host(const Signature& signature, ShapeState state, double host_s) {
  {
    const std::unique_lock lock(mutex_);
    Shape& shape = shape_of(signature);
    set_state(shape, std::move(state));
    shape.host_s = shape.net_s = {};
  }
  nets_.put(
      {.signature = signature, .weights = {}, .net = nullptr, .orders = {}, .earns_ns = Credit::tenth(ns_of(host_s))});
}

void Region::keep_net(Ready ready, ShapeState state) {
  {
    const std::unique_lock lock(mutex_);
    Shape& shape = shape_of(ready.signature);
    set_state(shape, std::move(state));
    shape.seen.clear();
    packed_.insert(ready.weight_set);
    dropped_ = false;
  }
  nets_.put(std::move(ready));
}

void Region::note_trial(const Signature& signature, Side side, int64_t ns, const NetCache::Entry& net, int threads) {
  std::optional<Verdict> found;
  std::string source;
  ShapeState state;
  {
    const std::unique_lock lock(mutex_);
    Shape& shape = shape_of(signature);
    if (!shape.host.empty()) return;
    std::vector<double>& own = side == Side::net ? shape.net_s : shape.host_s;
    if (own.size() < close_trial_calls) own.push_back(seconds_of(ns));
    if (net == nullptr) return;
    if (side == Side::net && !shape.host_s.empty()) {
      const double host = *std::min_element(shape.host_s.begin(), shape.host_s.end());
      credit_.net_ran(ns, ns_of(host));
    }
    const bool enough = shape.host_s.size() >= trial_calls && shape.net_s.size() >= trial_calls;
    if (!enough && !loses_clearly(shape.net_s, shape.host_s)) return;
    Verdict now;
    now.seconds = middle(shape.net_s), now.host_seconds = middle(shape.host_s), now.error = shape.verdict.error;
    const bool more = shape.net_s.size() < close_trial_calls || shape.host_s.size() < close_trial_calls;
    if (enough && is_close(now.seconds, now.host_seconds) && more) return;
    shape.host_s = shape.net_s = {};
    source = source_;
    found = std::move(now);
    state = state_of(shape);
  }
  const Verdict before = recall(signature, source, threads);
  state.verdict = merged(before, std::move(*found), settings_.options.max_error);
  remember(signature, source, state.verdict, threads);
  {
    const std::unique_lock lock(mutex_);
    note_gain(state.verdict);
  }
  if (!state.verdict.wins) {
    state.host = state.verdict.reason;
    keep_host(signature, state, state.verdict.host_seconds);
  } else {
    Ready settled = *net;
    settled.on_trial = false;
    settled.earns_ns = Credit::earned(ns_of(state.verdict.seconds), ns_of(state.verdict.host_seconds));
    keep_net(std::move(settled), state);
  }
  if (settings_.prepared) settings_.prepared(signature, state, nullptr);
}

std::string Region::verdict_key(const Signature& signature, const std::string& plan) const {
  std::string text = "region " + settings_.content + " ";
  for (const int64_t value : signature) text += std::to_string(value) + ",";
  return text + " " + format_options(settings_.options).at("max_error") + " " + settings_.host + " plan " + plan;
}

Verdict Region::recall(const Signature& signature, const std::string& plan, int threads) const {
  if (settings_.options.tune == TuneMode::off) return {};
  const auto known = Ledger(shared_cost_db(), threads).find_verdict(verdict_key(signature, plan));
  return known ? verdict_of(*known, settings_.options.max_error) : Verdict();
}

void Region::remember(const Signature& signature, const std::string& plan, const Verdict& verdict, int threads) const {
  Ledger(shared_cost_db(), threads)
      .add_verdict(verdict_key(signature, plan),
                   {verdict.wins, verdict.seconds, verdict.host_seconds, verdict.error, verdict.trials});
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
  keep_host(signature, std::move(state), 0);
}

void Region::drop_weight_set(uint64_t weight_set) {
  {
    const std::unique_lock lock(mutex_);
    dropped_ |= packed_.erase(weight_set) > 0;
  }
  nets_.drop_weight_set(weight_set);
}

void Region::clear() {
  {
    const std::unique_lock lock(mutex_);
    packed_.clear();
  }
  nets_.clear();
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
