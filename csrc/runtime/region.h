// A region while a program runs: signature -> plan -> net -> verdict, for any sequence of shapes. What every door
// calls; a door supplies how to lower for shapes, how to run the host, and where weights come from (call.h).
#pragma once

#include <atomic>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/fork_mutex.h"
#include "runtime/credit.h"
#include "runtime/judge.h"
#include "runtime/plans.h"
#include "runtime/unplanned.h"
#include "tune/plan/plan.h"
#include "tune/records/cost_keys.h"

namespace softneuro {

// What is known of one signature.
struct ShapeState {
  std::string host;  // why the host runs it; empty: it does not, or it is not decided
  std::string inputs;
  SharedPlan plan;
  Verdict verdict;
  std::string weights;            // content of those that its error was measured with
  std::optional<NetStats> stats;  // of the net that was prepared last
};

struct RegionSettings {
  std::string name;     // for messages
  std::string content;  // hash of the region's ops: verdicts are remembered by it
  std::string host;     // the host with its version, and how it runs
  Options options;
  int64_t pause_ns = 0;  // JudgeSettings
  // Told of every preparation and verdict; without a graph where there was none to make.
  std::function<void(const Signature&, const ShapeState&, const Graph*)> prepared;
  OutsideCounts::Told outside = {};  // told of calls whose inputs calibration has not observed, now and then
  NowNs now = steady_now_ns;
  std::function<SharedPlan(const Graph&, const Options&, int threads, const Progress&)> plan = new_plan;
};

class Region {
 public:
  enum class Side : unsigned char { host, net };

  explicit Region(RegionSettings settings);
  ~Region();
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;

  // Quick, for what runs at once: a net, or the host where Ready has none. Null: call run().
  NetCache::Entry find(std::span<const int64_t> signature, const WeightSet& weights) const {
    return nets_.find(signature, weights);
  }
  // The same for weights of which no more is known than where they are.
  NetCache::Entry find_at(std::span<const int64_t> signature, const WeightTable::Addresses& addresses) const;

  // Where find() finds nothing, still quick: whether the host is to run the call for no more than that its signature is
  // new, which is noted here.
  bool first_sight(std::span<const int64_t> signature);
  // No call is left for that while a door wants plans for the very shapes at hand. Counts.
  static void pause_first_sights(bool pause);

  // Runs the call, by the net or by the host; which of them has the results. Prepares, measures and decides on the way,
  // within the credit (credit.h), for the first signature at once. Throws PlanFileError, and what the host raises.
  Side run(const Signature& signature, const WeightSet& weights, RegionCall& call);
  // The same where a step of a net has raised: the host raises, too, or it is to run these shapes.
  void run_after_error(const Signature& signature, RegionCall& call);
  // Makes a net for the signature now, and a verdict if the call has values. What is there then: nothing while calls
  // are to be observed first.
  NetCache::Entry prepare(const Signature& signature, const WeightSet& weights, RegionCall& call);

  // What is known of each signature, by age, the newest last.
  std::vector<std::pair<Signature, ShapeState>> shapes() const;
  // A plan or a host made known before anything was prepared.
  void restore(const Signature& signature, Plan plan, std::string host);

  // Weights that find_at() is to know.
  void add_weights(WeightTable::Addresses addresses, std::shared_ptr<WatchedWeights> weights);
  // Forgets a set of weights, and the nets made from it.
  void drop_weights(uint64_t identity);
  void clear();
  // From here on as if it had been made with these options; nothing that it has decided stays. Calls may go on
  // meanwhile: each has the old plan or the new one.
  void reconfigure(Options options);
  // Ends the observing of calls that the option `calibration` asks for: writes ranges, and errors by running what was
  // kept of the inputs. How many calls were observed; 0 if none were, or if it had ended before. Throws Error.
  int64_t finish_calibration(const Progress& progress = {});
  // Forgets what is known of weights that keep changing.
  void start_afresh();
  // Calls of plans with grids whose inputs had values that calibration has not observed, under the options at hand.
  OutsideCounts::Found outside() const;
  // Why weights keep the host at work for now; empty if they do not.
  std::string held_up() const;
  size_t nets() const { return nets_.nets(); }
  uint64_t hits() const { return nets_.hits(); }
  // That its nets run on, each once.
  std::vector<std::shared_ptr<const Packed>> packings() const { return nets_.packings(); }
  int64_t credit_ns() const { return credit_.left() + nets_.earned_ns(); }
  const RegionSettings& settings() const { return settings_; }
  const Options& options() const { return *options_.load(std::memory_order_acquire); }

 private:
  struct Shape : ShapeState {
    std::weak_ptr<const KnownPlan> carried;      // the plan, if it is as easily carried over again: its net keeps it
    std::vector<std::pair<uint64_t, int>> seen;  // calls by weight set that found no net
    int sights = 0;                              // and of weights that were not asked for
    Unplanned::Mark mark = 0;                    // of its graph's structure, if no plan was known for it
    Plan restored;                               // to be taken if it is for the very graph
    std::vector<double> host_s, net_s;           // by call, before there is a verdict
  };
  struct Item {
    Signature signature;
    Shape shape;
  };
  static constexpr size_t most_shapes = 4096;
  static constexpr size_t most_trial_calls = 7;  // of either side, for a verdict
  static constexpr int most_attempts = 3;        // at shapes that need no credit, until there is a first plan
  struct Making;
  enum class Turn : unsigned char { host, instead, net, prepare };
  struct Decision {
    Turn turn = Turn::host;
    NetCache::Entry net;
    bool tries = false;  // whether its time is to be noted for a verdict
    bool drop = false;   // the nets of these weights as they were
    uint64_t generation = 0;
  };

  Shape& shape_of(const Signature& signature);
  static ShapeState state_of(const Shape& shape);
  static void set_state(Shape& shape, ShapeState state);
  bool untried() const { return source_.empty() && attempts_ < most_attempts; }
  Decision decide(const Signature& signature, const WeightSet& weights, bool at_once);
  Decision decide_now(const Signature& signature, const WeightSet& weights, bool at_once);
  struct Due {
    Unplanned::Item* waiting = nullptr;  // what needs a plan first
    Price plan, rest;                    // for that, and to lower, pack, prepare and run both sides
    int64_t saved = 0;                   // for others
    int64_t credit() const { return plan.at_most + rest.at_most + saved; }
  };
  Due due(const Signature& signature, const WeightSet& weights, const Shape& shape);
  Price price_of_plan(int layers) const;
  bool affordable(const Signature& signature, const WeightSet& weights, Shape& shape);
  void note_gain(const Verdict& verdict);
  void note_host(const Signature& signature, const WeightSet& weights, int64_t ns);
  int calls_to_leave(const Due& due, Shape& shape, const WeightSet& weights) const;
  Side prepare_and_run(const Signature& signature, const WeightSet& weights, RegionCall& call);
  Side prepare_now(const Signature& signature, const WeightSet& weights, RegionCall& call);
  // Null if none is at hand and a new one is too dear for now.
  SharedPlan choose_plan(const Graph& graph, double allowed, Making& making);
  void note_price(const Making& making, int64_t spent);
  bool may_plan(const Graph& graph, Making& making);
  void note_unplanned(const Making& making, const Graph& graph);
  void note_planning(const Graph& graph, int64_t ns);
  std::optional<double> make_net(Making& making, double allowed);
  void nothing_known(const Making& making);
  void look_at_inputs(const Making& making, Ready& ready) const;
  void run_made(Making& making, Ready ready);
  void start_trial(Ready ready, Making& making);
  void check_error(const Ready& ready, const std::string& choices, Making& making, Verdict& verdict);
  // What was decided under options that are gone is not kept.
  void keep_host(const Signature& signature, ShapeState state, double host_s, uint64_t generation);
  void keep_net(Ready ready, ShapeState state, uint64_t generation);
  void put(Ready ready, uint64_t generation);
  void note_trial(const Signature& signature, Side side, int64_t ns, const Decision& decision, int threads);
  int64_t run_timed_host(RegionCall& call);
  struct Watching;
  std::optional<Side> watch(const Signature& signature, const WeightSet& weights, RegionCall& call);
  bool waits_for_calls(RegionCall& call);
  void watch_shape(const Signature& signature, const WeightSet& weights, RegionCall& call);
  void start_watching();
  void finish_watching(const Progress& progress);
  bool measures() const { return options().never_worse && options().tune == TuneMode::profile; }
  std::string verdict_key(const Signature& signature) const;
  // Recalls the verdict; without weights, of times alone.
  Verdict recall(const Signature& signature, const std::string& plan, const std::string& weights, int threads) const;
  void remember(const Signature& signature, const std::string& plan, const std::string& weights, const Verdict& verdict,
                int threads) const;

  const RegionSettings settings_;   // but for options, which may be others by now
  std::list<Options> all_options_;  // the last ones count; others may still be read
  std::atomic<const Options*> options_;
  std::atomic<uint64_t> generation_ = 0;                // of the options; it changes under mutex_ and preparing_
  ForkMutex watching_mutex_{ForkMutex::AtFork::leave};  // held while a call is observed
  std::unique_ptr<Watching> watching_;
  std::atomic<bool> watches_ = false;
  ForkMutex preparing_{ForkMutex::AtFork::leave};  // held while a net is made
  mutable ForkMutex mutex_;  // of what follows; never held while a net is freed, which may be a host's code
  std::list<Item> items_;    // the newest at the end
  std::unordered_map<std::span<const int64_t>, std::list<Item>::iterator, SignatureHash, SignatureEqual> by_signature_;
  std::shared_ptr<OutsideCounts> outside_;
  bool has_host_ = true;
  int attempts_ = 0;          // to prepare
  int changes_ = 0;           // preparations in a row that only changed weights made necessary
  uint64_t uses_ = 0;         // of nets that quick look-ups do not find
  uint64_t uses_before_ = 0;  // of all nets, after the last preparation
  bool held_up_ = false;
  std::map<uint64_t, uint64_t> packed_;  // sets of weights that nets were made from, and their last epoch
  bool dropped_ = false;                 // one of them has changed, and no net has been made since
  std::string source_;                   // choices of the plan that others are carried from
  double gain_ = 0.5;                    // share of the host's time that nets have saved of late
  CostGuess shape_cost_, weights_cost_;
  CostGuess plan_cost_;  // by layer, nothing measured
  Unplanned unplanned_;
  Credit credit_;
  std::shared_ptr<ArenaPool> arenas_ = std::make_shared<ArenaPool>();
  NetCache nets_;
  WeightTable weights_;
};

}  // namespace softneuro
