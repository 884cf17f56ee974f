// Looks for changes of weights that nothing else shows, a slice at a time. Runs pay for it: a hundredth of their time.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/fork_mutex.h"
#include "runtime/clock.h"

namespace softneuro {

// The bytes of one set of weights as they were when nets were made from them, as a hash for each slice. Thread-safe.
class WeightScan {
 public:
  // A tensor's elements where they lie; strides in elements.
  struct Piece {
    const void* data;
    size_t element_bytes;
    std::vector<int64_t> sizes, strides;
    bool operator==(const Piece&) const = default;
  };
  static constexpr size_t slice_bytes = size_t{16} << 10;
  static constexpr int64_t share = 100;  // a look takes no more than this part of what runs have taken

  explicit WeightScan(NowNs now = steady_now_ns);
  ~WeightScan();

  // Takes the bytes as they are now for those that nets are about to be made from, unless they are known and a few
  // places of them are as they were.
  void learn(std::vector<Piece> pieces);
  // They have changed: nets made before are not of them.
  void forget();
  // Counts what was learnt; nets of an earlier epoch are made from bytes that are no more.
  uint32_t epoch() const { return epoch_.load(std::memory_order_relaxed); }
  bool learnt() const { return slices_.load(std::memory_order_relaxed) != 0; }

  // Compares as many slices as runs have paid for since the last time. False where it finds a change, which is told
  // and forgotten. Only while the memory is there.
  bool look() { return credit_.load(std::memory_order_relaxed) < price_.load(std::memory_order_relaxed) || compare(); }

  // Calls that take so long each after which every byte has been compared; 0 if there is nothing to compare.
  int64_t calls_to_see_all(int64_t run_ns) const;
  // What the last run is known to take; 0 before any.
  int64_t run_ns() const { return run_ns_.load(std::memory_order_relaxed); }
  size_t bytes() const;
  // Changes found in this process.
  static uint64_t found();

 private:
  friend class PaidRuns;
  struct Snapshot;

  bool compare();
  void earn(int64_t ns) {
    run_ns_.store(ns, std::memory_order_relaxed);
    // Two threads may lose a payment. Where nobody looks it does not grow beyond what one look may take.
    const int64_t paid = ns / share, most = 2 * paid + 2 * price_.load(std::memory_order_relaxed);
    const int64_t credit = credit_.load(std::memory_order_relaxed) + paid;
    credit_.store(credit < most ? credit : most, std::memory_order_relaxed);
  }

  static constexpr int64_t never = INT64_MAX / 4;
  const NowNs now_;
  std::atomic<int64_t> credit_{0}, price_{never};  // of one slice; both in nanoseconds
  std::atomic<int64_t> run_ns_{0};
  std::atomic<uint32_t> epoch_{0}, looks_{0};
  std::atomic<size_t> slices_{0};
  mutable ForkMutex mutex_;  // of what follows
  std::unique_ptr<Snapshot> snapshot_;
};

// The runs of one net on a set of weights. A run is timed after each look; others are taken to last as long.
class PaidRuns {
 public:
  explicit PaidRuns(std::shared_ptr<WeightScan> scan) : scan_(std::move(scan)), epoch_(scan_->epoch()) {}

  bool up_to_date() const { return scan_->epoch() == epoch_; }
  WeightScan& scan() const { return *scan_; }
  template <typename Run>
  void pay(const Run& run) const {
    const uint32_t looks = scan_->looks_.load(std::memory_order_relaxed);
    int64_t ns = ns_.load(std::memory_order_relaxed);
    if (ns == 0 || timed_.load(std::memory_order_relaxed) != looks) {
      const int64_t start = scan_->now_();
      run();
      ns = note(scan_->now_() - start);
      timed_.store(looks, std::memory_order_relaxed);
    } else {
      run();
    }
    scan_->earn(ns);
  }

 private:
  // A run that was interrupted is no sign of long ones.
  int64_t note(int64_t ns) const {
    const int64_t known = ns_.load(std::memory_order_relaxed);
    const int64_t found = known == 0 ? ns : (3 * known + (ns < 2 * known ? ns : 2 * known)) / 4;
    ns_.store(found > 0 ? found : 1, std::memory_order_relaxed);
    return found;
  }

  const std::shared_ptr<WeightScan> scan_;
  const uint32_t epoch_;
  mutable std::atomic<int64_t> ns_{0};
  mutable std::atomic<uint32_t> timed_{0};
};

}  // namespace softneuro
