// What may be spent on preparing nets for shapes that came after the first, so that no sequence of shapes, however it
// is made, takes much longer than the host alone: THE rule is that total time <= 1.1 H + 50 ms and some microseconds a
// call. H is what the host would have taken for the calls so far.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace softneuro {

// A tenth of H, plus what nets have saved, less what preparing has cost. Thread-safe; all in nanoseconds.
class Credit {
 public:
  static constexpr int64_t start_ns = 50'000'000;

  int64_t left() const { return left_.load(std::memory_order_relaxed); }
  void spend(int64_t ns) { left_.fetch_sub(ns, std::memory_order_relaxed); }
  void host_ran(int64_t ns) { left_.fetch_add(tenth(ns), std::memory_order_relaxed); }
  void net_ran(int64_t ns, int64_t host_ns) { left_.fetch_add(earned(ns, host_ns), std::memory_order_relaxed); }

  // By a call of the net where the host would have taken so long.
  static int64_t earned(int64_t net_ns, int64_t host_ns) { return tenth(host_ns) + host_ns - net_ns; }
  static int64_t tenth(int64_t ns) { return ns / 10; }

 private:
  std::atomic<int64_t> left_{start_ns};
};

// The price of something to come, in nanoseconds.
struct Price {
  int64_t typical = 0, at_most = 0;
};
inline Price operator+(const Price& a, const Price& b) { return {a.typical + b.typical, a.at_most + b.at_most}; }

// A price by the last few times that it was paid.
class CostGuess {
 public:
  void add(int64_t ns) {
    if (last_.size() == most) last_.erase(last_.begin());
    last_.push_back(ns);
    std::vector<int64_t> sorted = last_;
    std::sort(sorted.begin(), sorted.end());
    price_ = {sorted[sorted.size() / 2], sorted.back()};
  }
  const Price& price() const { return price_; }
  bool is_known() const { return !last_.empty(); }

 private:
  static constexpr size_t most = 5;
  std::vector<int64_t> last_;  // the newest at the end
  Price price_;
};

}  // namespace softneuro
