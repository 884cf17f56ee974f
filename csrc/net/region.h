// Prepared nets by name, so that a host's op finds its net without the language that prepared it.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/memory_picture.h"
#include "net/net.h"

namespace softneuro {

// Memory of the weights that a net was prepared from, and enough of its content to notice most later changes.
class WeightGuards {
 public:
  // Keeps all bytes of a small weight or of one to be compared whole, of others a few places.
  void add(const void* data, size_t bytes, bool whole);
  const std::vector<const void*>& addresses() const { return data_; }
  bool match(std::span<const void* const> data) const;
  bool unchanged() const { return picture_.unchanged(); }
  // Adds what unchanged() reads.
  void list(CacheLines& lines) const { picture_.list(lines); }

 private:
  std::vector<const void*> data_;
  MemoryPicture picture_;
};

// One net, for one signature of shapes and one set of weights.
struct RegionEntry {
  std::vector<int64_t> signature;  // whatever the door distinguishes: threads, shapes
  WeightGuards weights;
  std::shared_ptr<const Net> net;
  std::vector<std::vector<int64_t>> orders;    // by output: its axes, outermost in memory first; empty if row-major
  uint64_t weight_set = 0;                     // the door's name for the weights
  std::shared_ptr<const void> door = nullptr;  // what the door keeps beside the net
  CacheLines looked_at = {};                   // of the weights, at each look for this entry; put() lists it
};

// Process-wide. A key is a hash of the region's content, never a number handed out at run time: hosts cache compiled
// code on disk, and such code must not find another region in the next process.
class RegionTable {
 public:
  static RegionTable& global();

  // Replaces an entry of the same signature and weights; drops the least recently used beyond `capacity` per region.
  void put(const std::string& region, RegionEntry entry, size_t capacity);
  // Null if there is none or its weights have changed since.
  std::shared_ptr<const RegionEntry> find(std::string_view region, std::span<const int64_t> signature,
                                          std::span<const void* const> weights);
  // The same for a set of weights that the door knows to be the same tensors, where they were.
  std::shared_ptr<const RegionEntry> find(std::string_view region, std::span<const int64_t> signature,
                                          uint64_t weight_set);
  // Forgets a region and frees its nets.
  void drop(std::string_view region);
  // Frees its nets; others are going to follow.
  void clear(std::string_view region);
  void drop_weight_set(std::string_view region, uint64_t weight_set);
  size_t entries(std::string_view region) const;
  // Calls of find() that found a net with its weights unchanged.
  uint64_t hits(std::string_view region) const;

 private:
  struct Slot {
    std::shared_ptr<const RegionEntry> entry;
    std::atomic<uint64_t> used;
    Slot(std::shared_ptr<const RegionEntry> e, uint64_t u) : entry(std::move(e)), used(u) {}
  };
  struct Region {
    std::vector<std::unique_ptr<Slot>> slots;
    std::atomic<uint64_t> hits{0};
  };

  RegionTable();
  template <typename Match>
  std::shared_ptr<const RegionEntry> find_by(std::string_view region, std::span<const int64_t> signature,
                                             const Match& match);

  mutable std::shared_mutex mutex_;
  std::atomic<uint64_t> clock_{0};
  std::map<std::string, Region, std::less<>> regions_;
};

// Text of an error that passes through a host's C interface, which keeps none. One per thread; taking clears it.
void set_region_error(std::string text);
std::string take_region_error();

}  // namespace softneuro
