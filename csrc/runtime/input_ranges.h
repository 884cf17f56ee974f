// Whether a region's inputs keep to what its calibration has observed: what does not is clamped where the plan has it
// in bytes, and blobs behind it are, too.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/fork_mutex.h"
#include "base/schema.h"
#include "graph/graph.h"
#include "graph/grids.h"
#include "net/net.h"

namespace softneuro {

// An input that had values outside, in some calls.
struct OutsideInput {
  std::string name;
  Observed range;   // that calibration has observed
  float value = 0;  // the farthest; what is not finite is farther than all else
  int64_t calls = 0;
};

// A region has one for each set of options. Thread-safe.
class OutsideCounts {
 public:
  struct Found {
    int64_t looked = 0, outside = 0;  // calls
    std::vector<OutsideInput> inputs;
  };
  using Told = std::function<void(const Found&)>;

  // `told` is called at the first call outside, and each time that they have doubled.
  OutsideCounts(std::string region, Told told) : region_(std::move(region)), told_(std::move(told)) {}

  // The number of this look, if the call is to be looked at: all of the first ones are, then each sixteenth.
  std::optional<uint64_t> next_look();
  void note(std::vector<OutsideInput> inputs);
  Found found() const;

 private:
  static constexpr uint64_t first = 16, every = 16;

  const std::string region_;
  const Told told_;
  std::atomic<uint64_t> calls_ = 0, looks_ = 0;
  mutable ForkMutex mutex_;  // of what follows
  int64_t outside_ = 0;
  std::map<std::string, OutsideInput> inputs_;
};

// One net's inputs are compared with these.
class InputRanges {
 public:
  // Null if the plan has no grids, or nothing is known of its inputs.
  static std::shared_ptr<const InputRanges> of(const Graph& graph, const Grids* grids, const Net& net,
                                               std::shared_ptr<OutsideCounts> counts);

  // The memory of all of the net's inputs in a call.
  void look(std::span<const void* const> inputs) const;

 private:
  struct Item {
    size_t input;  // of the net
    DType dtype;
    int64_t count;
    float least, most;  // beyond which values are outside
    OutsideInput told;  // as it begins
  };

  explicit InputRanges(std::shared_ptr<OutsideCounts> counts) : counts_(std::move(counts)) {}

  std::shared_ptr<OutsideCounts> counts_;
  std::vector<Item> items_;
};

}  // namespace softneuro
