// A region of the host's graph while sessions run: nets by shapes, prepared on demand, and the host where it is better.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "net/net.h"
#include "net/region.h"
#include "providers/ort/host_region.h"
#include "providers/ort/lowering.h"
#include "providers/ort/payload.h"
#include "providers/ort/report.h"
#include "tune/options.h"
#include "tune/planner.h"

namespace softneuro::ort {

struct RegionSettings {
  Options options;
  int threads = 1;  // of nets
  std::shared_ptr<Report> report;
};

// One input as a run gives it.
struct RunInput {
  DType type = DType::float32;
  std::span<const int64_t> dims;
  const void* data = nullptr;
};

// What a signature's entry in the region table keeps beside its net.
struct Ready {
  std::vector<int> inputs;  // which of the region's are the net's
  std::vector<GivenOutput> outputs;
  std::string host;  // why the host runs it; empty: the net does
};

struct Verdict {
  bool known = false, wins = true;
  double seconds = 0, host_seconds = 0, error = 0;
  std::string reason;
};

class Region {
 public:
  // Constants of `ops` must live as long.
  Region(OpGraph ops, RegionSettings settings);
  ~Region();
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;

  using Entry = std::shared_ptr<const RegionEntry>;
  // The entry for these inputs, prepared if need be, which may take as long as tuning. Throws PlanFileError.
  Entry entry(std::span<const RunInput> inputs);
  static const Ready& ready(const Entry& entry) { return *static_cast<const Ready*>(entry->door.get()); }
  // Prepares for the declared shapes, if these are all fixed.
  void prepare_declared();
  // Why the host should keep the region for its declared shapes: by the verdict that is known, or that is found now on
  // made-up inputs. Empty if it should not, or if shapes are open.
  std::string declared_verdict();
  // What is worth keeping; without inputs and outputs, which are the kernel's.
  SavedRegion saved() const;
  // Before anything is prepared: plans and packings of an equal region. Those of another device, version or thread
  // count are left out with a warning, or with options.strict refused by an Error.
  void restore(SavedRegion saved);
  // The region on the host's CPU provider.
  const HostRegion& host();
  const OpGraph& ops() const { return ops_; }
  int threads() const { return settings_.threads; }
  std::string name() const;

 private:
  struct Shaped {
    Plan plan;
    std::string host;
  };
  using Signature = std::vector<int64_t>;

  Signature signature(std::span<const RunInput> inputs) const;
  std::vector<RunInput> declared_inputs() const;  // without data; empty if shapes are open
  Lowered lower(std::span<const RunInput> inputs) const;
  Entry prepare(const Signature& signature, std::span<const RunInput> inputs);
  void make_net(RegionEntry& entry, Ready& ready, Shaped& shaped, std::span<const RunInput> inputs);
  TuneResult plan(const Signature& signature, const Graph& graph);
  const Shaped* nearest(const Signature& signature, size_t layers) const;
  bool is_sized(size_t input) const { return ops_.value(ops_.inputs[input]).sized; }
  bool judges() const;
  std::string verdict_key(const Graph& graph) const;
  Verdict recall(const Graph& graph) const;
  Verdict measure(const Graph& graph, const Net& net, const Ready& ready, std::span<const RunInput> inputs) const;
  std::shared_ptr<PackedCache> cache(const Lowered& lowered);
  static std::string shapes_text(std::span<const RunInput> inputs);
  void report(std::span<const RunInput> inputs, const std::string& host, const Graph* graph = nullptr,
              const TuneResult* plan = nullptr, const Verdict& verdict = {}) const;

  OpGraph ops_;
  RegionSettings settings_;
  std::string key_;        // in the region table
  bool is_saved_ = false;  // it comes from a compiled model
  mutable std::mutex mutex_;
  std::map<Signature, Shaped> shaped_;
  std::map<std::string, std::shared_ptr<PackedCache>> caches_;  // by structure
  std::vector<PackedCache::Item> restored_;                     // for the caches to be made
  std::mutex host_mutex_;
  std::unique_ptr<HostRegion> host_;
};

}  // namespace softneuro::ort
