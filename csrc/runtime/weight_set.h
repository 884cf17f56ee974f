// The weights that nets are made from, and whether they are what they were: one contract for both doors.
//
// A door names the weights of a call by a WeightSet, and a net is for one of these. Where weights may change, the door
// asks `epoch_of(set)` at every call, by whatever it knows of its host, and by look() below, which compares bytes: some
// places each time, all others by turns, for which runs pay a hundredth of their time.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/fork_mutex.h"
#include "runtime/clock.h"

namespace softneuro {

struct WeightSet {
  // Of the memory that they are in, never given twice: nets may read it, so that equal content elsewhere is another
  // set. (What is packed, and errors that were measured, are known by content.) 0 is all that never changes.
  uint64_t identity = 0;
  uint64_t epoch = 0;  // grows whenever the host says, or a look finds, that a weight may have changed
  bool operator==(const WeightSet&) const = default;
};
inline constexpr WeightSet constant_weights{};

// The bytes of a set of weights as they were when nets were made from them. Thread-safe.
class WatchedWeights {
 public:
  // A tensor's elements where they lie; strides in elements.
  struct Piece {
    const void* data;
    size_t element_bytes;
    std::vector<int64_t> sizes, strides;
    bool whole = false;  // to be compared at each look, if the elements lie one after the other
    bool is_memory_of(const Piece& other) const {
      return data == other.data && element_bytes == other.element_bytes && sizes == other.sizes &&
             strides == other.strides;
    }
  };
  static constexpr size_t slice_bytes = size_t{16} << 10;
  static constexpr int64_t share = 100;  // a look at slices takes no more than this part of what runs have taken

  explicit WatchedWeights(NowNs now = steady_now_ns);
  ~WatchedWeights();

  uint64_t identity() const { return identity_; }
  // Compares all of what is small or to be compared whole, a few places of the rest, and as many slices of that as runs
  // have paid for since the last time. Only while the memory is there.
  WeightSet look();
  // Takes the bytes as they are now for those that nets are about to be made from, unless they are known and the places
  // are as they were. What nets made from here on are of. `slices`: whether there are runs to pay for them.
  WeightSet learn(std::vector<Piece> pieces, bool slices = true);
  // The host says that one may have changed.
  void changed();

  // Calls that take so long each after which every byte has been compared; 0 if a look compares all.
  int64_t calls_to_see_all(int64_t run_ns) const;
  // What the last run is known to take; 0 before any.
  int64_t run_ns() const { return run_ns_.load(std::memory_order_relaxed); }
  // In slices.
  size_t bytes() const;
  // Changes that slices have shown in this process.
  static uint64_t found();

 private:
  friend class PaidRuns;
  struct Snapshot;

  bool slices_are_due() const {
    return credit_.load(std::memory_order_relaxed) >= price_.load(std::memory_order_relaxed);
  }
  bool compare_slices(Snapshot& snapshot);
  void forget();
  void earn(int64_t ns) {
    run_ns_.store(ns, std::memory_order_relaxed);
    // Two threads may lose a payment. Where nobody looks it does not grow beyond what one look may take.
    const int64_t paid = ns < share ? 1 : ns / share, most = 2 * paid + 2 * price_.load(std::memory_order_relaxed);
    const int64_t credit = credit_.load(std::memory_order_relaxed) + paid;
    credit_.store(credit < most ? credit : most, std::memory_order_relaxed);
  }

  static constexpr int64_t never = INT64_MAX / 4;
  const NowNs now_;
  const uint64_t identity_;
  std::atomic<int64_t> credit_{0}, price_{never};  // of one slice; both in nanoseconds
  std::atomic<int64_t> run_ns_{0};
  std::atomic<uint32_t> looks_{0};  // at slices
  std::atomic<size_t> slices_{0};
  mutable ForkMutex mutex_;  // of what follows
  uint64_t epoch_ = 0;
  std::unique_ptr<Snapshot> snapshot_;  // null after a change, and before any net
  ForkMutex turn_;                      // whose turn at the slices it is
};

// What a net is made of, whose runs pay for looks. A run is timed after each look at slices; others are taken to last
// as long.
class PaidRuns {
 public:
  PaidRuns(std::shared_ptr<WatchedWeights> weights, WeightSet made_of)
      : weights_(std::move(weights)), made_of_(made_of) {}

  const WeightSet& made_of() const { return made_of_; }
  template <typename Run>
  void pay(const Run& run) const {
    if (weights_->slices_.load(std::memory_order_relaxed) == 0) return run();
    const uint32_t looks = weights_->looks_.load(std::memory_order_relaxed);
    int64_t ns = ns_.load(std::memory_order_relaxed);
    if (ns == 0 || timed_.load(std::memory_order_relaxed) != looks) {
      const int64_t start = weights_->now_();
      run();
      ns = note(weights_->now_() - start);
      timed_.store(looks, std::memory_order_relaxed);
    } else {
      run();
    }
    weights_->earn(ns);
  }

 private:
  // A run that was interrupted is no sign of long ones.
  int64_t note(int64_t ns) const {
    const int64_t known = ns_.load(std::memory_order_relaxed);
    const int64_t found = known == 0 ? ns : (3 * known + (ns < 2 * known ? ns : 2 * known)) / 4;
    ns_.store(found > 0 ? found : 1, std::memory_order_relaxed);
    return found;
  }

  const std::shared_ptr<WatchedWeights> weights_;
  const WeightSet made_of_;
  mutable std::atomic<int64_t> ns_{0};
  mutable std::atomic<uint32_t> timed_{0};
};

// Sets by where their weights are, for a caller that has nothing else of them. Thread-safe.
class WeightTable {
 public:
  using Addresses = std::vector<const void*>;
  void add(Addresses addresses, std::shared_ptr<WatchedWeights> weights);
  void drop(uint64_t identity);
  // The set as it is now; nothing if there is none.
  std::optional<WeightSet> look(const Addresses& addresses) const;

 private:
  mutable ForkMutex mutex_;
  std::map<Addresses, std::shared_ptr<WatchedWeights>> sets_;
};

}  // namespace softneuro
