// Nets that are ready, by what they were prepared for. What is found here runs at once.
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
#include "base/memory_snapshot.h"
#include "net/net.h"
#include "runtime/weight_scan.h"

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

// Memory of the weights that a net was prepared from, and enough of its content to notice most later changes.
class WeightGuards {
 public:
  // Keeps all bytes of a small weight or of one to be compared whole, of others a few places.
  void add(const void* data, size_t bytes, bool whole);
  // Other changes are looked for by a scan that has just learnt these weights.
  void scan_by(std::shared_ptr<WeightScan> scan) { runs_ = std::make_shared<const PaidRuns>(std::move(scan)); }
  bool match(std::span<const void* const> data) const;
  bool unchanged() const { return (runs_ == nullptr || runs_->up_to_date()) && snapshot_.unchanged(); }
  // The scan's turn. False if it finds a change.
  bool look() const { return runs_ == nullptr || runs_->scan().look(); }
  // Runs a net of these weights.
  template <typename Run>
  void pay(const Run& run) const {
    runs_ == nullptr ? run() : runs_->pay(run);
  }

 private:
  std::vector<const void*> data_;
  MemorySnapshot snapshot_;
  std::shared_ptr<const PaidRuns> runs_;
};

// A net for one signature and one set of weights, or the host for a signature and any weights.
struct Ready {
  Signature signature;
  WeightGuards weights;
  uint64_t weight_set = 0;                     // the door's name for the weights
  std::shared_ptr<const Net> net;              // null: the host runs these calls
  std::vector<std::vector<int64_t>> orders;    // by output: its axes, outermost in memory first; empty if row-major
  std::shared_ptr<const void> door = nullptr;  // what the door keeps beside the net
  std::shared_ptr<const void> plan = nullptr;  // of the net
  bool on_trial = false;                       // calls are still watched: quick look-ups do not find it
  // Where the host runs in a net's place: calls that it may run before the region is asked again; -1: any number.
  int patience = -1;
  int64_t earns_ns = 0;  // what a call adds to the region's credit (credit.h)
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
  // Null if there is none, if it is on trial or if its weights, whose memory the caller holds, have changed since. A
  // scan of the weights has its turn.
  Entry find(std::span<const int64_t> signature, std::span<const void* const> weights) const;
  // The same for a set of weights that the door knows to be the same tensors, where they were, without a scan.
  Entry find(std::span<const int64_t> signature, uint64_t weight_set) const;
  // What is decided or on trial for a signature and a set of weights; null if there is none or the weights have
  // changed.
  Entry peek(std::span<const int64_t> signature, uint64_t weight_set) const;

  // Whether there is a net for them, though its weights may have changed.
  bool has(std::span<const int64_t> signature, uint64_t weight_set) const;

  void clear();
  void drop_weight_set(uint64_t weight_set);
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

  template <typename Match, typename Host>
  Entry find_by(std::span<const int64_t> signature, const Match& match, const Host& host) const;
  template <typename Match>
  Entry find_settled(std::span<const int64_t> signature, const Match& match) const;
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
