// Nets that are ready, by what they were prepared for: a signature, and weights as they were. What is found here runs
// at once.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/fork_mutex.h"
#include "net/net.h"
#include "runtime/input_ranges.h"
#include "runtime/weight_set.h"

namespace softneuro {

// Whatever a door tells calls apart by: threads, shapes, types.
using Signature = std::vector<int64_t>;
void append_text(Signature& signature, std::string_view text);
struct SignatureHash {
  size_t operator()(std::span<const int64_t> signature) const;
};
struct SignatureEqual {
  bool operator()(std::span<const int64_t> a, std::span<const int64_t> b) const {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  }
};

// A net for one signature and one set of weights, or the host for a signature and any weights.
struct Ready {
  Signature signature;
  WeightSet weights = {};
  std::shared_ptr<const Net> net;                  // null: the host runs these calls
  std::vector<std::vector<int64_t>> orders;        // by output: its axes, outermost in memory first; empty if row-major
  std::shared_ptr<const void> door = nullptr;      // what the door keeps beside the net
  std::shared_ptr<const void> plan = nullptr;      // of the net
  std::shared_ptr<const PaidRuns> runs = nullptr;  // where weights may change
  std::shared_ptr<const InputRanges> ranges = nullptr;  // of a plan with grids of its own
  bool flushes_denormals = false;                       // of its own steps, not of the host's
  bool on_trial = false;                                // calls are still watched: quick look-ups do not find it
  // Of the host's: calls that it may run before the region is asked again; -1: any number.
  int patience = -1;
  int64_t earns_ns = 0;  // what a call adds to the region's credit (credit.h)

  // Runs the net.
  void run(std::span<const void* const> inputs, std::span<void* const> outputs, const ParallelFor& parallel_for) const {
    if (ranges != nullptr) ranges->look(inputs);
    const auto run_net = [&] {
      net->run(inputs, outputs, flushes_denormals ? parallel_for.flushing_denormals() : parallel_for);
    };
    runs == nullptr ? run_net() : runs->pay(run_net);
  }
};

// Thread-safe. Forgets by age alone.
class NetCache {
 public:
  using Entry = std::shared_ptr<const Ready>;
  struct Limits {
    size_t entries = 4096;
    size_t nets = 1024;
    size_t net_bytes = size_t{64} << 20;  // of their own; packed weights and the memory of runs are shared
  };

  explicit NetCache(const Limits& limits) : limits_(limits) {}
  NetCache() : NetCache(Limits()) {}

  // Replaces what there is for the same signature and weights; what is the host's for good replaces all of the
  // signature.
  void put(Ready ready);
  // Null if there is none for the weights as they are, or if it is on trial.
  Entry find(std::span<const int64_t> signature, const WeightSet& weights) const;
  // What is decided or on trial; null if there is none.
  Entry peek(std::span<const int64_t> signature, const WeightSet& weights) const;

  void clear();
  // Forgets nets of these weights as they were before this epoch.
  void drop_before(const WeightSet& weights);
  void drop(std::span<const int64_t> signature);
  size_t nets() const;
  // That its nets run on, each once.
  std::vector<std::shared_ptr<const Packed>> packings() const;
  // Counts each find() that found a net.
  uint64_t hits() const { return hits_.load(std::memory_order_relaxed); }
  // Sum of what the entries found have earned.
  int64_t earned_ns() const { return earned_.load(std::memory_order_relaxed); }

 private:
  struct Slot {
    Entry entry;
    std::atomic<uint64_t> used;
    std::atomic<int> patience;
    Slot(Entry e, uint64_t u) : entry(std::move(e)), used(u), patience(entry->patience) {}
    // Whether the host may run one more call.
    bool waits() { return entry->patience < 0 || patience.fetch_sub(1, std::memory_order_relaxed) > 0; }
  };
  using Slots = std::vector<std::unique_ptr<Slot>>;

  template <typename Match>
  Entry find_by(std::span<const int64_t> signature, const Match& match) const;
  template <typename Drop>
  void drop_if(const Drop& drop);
  void take_out(Slots& slots, Slots::iterator slot, Slots& dropped);
  void drop_oldest(size_t count, bool nets_only, Slots& dropped);
  void make_room(Slots& dropped);

  const Limits limits_;
  mutable ForkMutex mutex_;
  mutable std::atomic<uint64_t> clock_{0}, hits_{0};
  mutable std::atomic<int64_t> earned_{0};
  std::unordered_map<size_t, Slots> slots_;  // by the signature's hash
  size_t entries_ = 0, nets_ = 0, net_bytes_ = 0;
};

}  // namespace softneuro
