// A region of the host's graph while sessions run: what this door supplies to the core's runtime (csrc/runtime).
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "providers/ort/context/payload.h"
#include "providers/ort/host/host_region.h"
#include "providers/ort/lower/lowering.h"
#include "providers/ort/run/output_shapes.h"
#include "providers/ort/run/report.h"
#include "runtime/region.h"
#include "tune/options.h"

namespace softneuro::ort {

struct RegionSettings {
  Options options;
  int threads = 1;  // of nets
  std::shared_ptr<Report> report;
  std::map<std::string, std::string> host_entries = {};  // HostRegion::Settings
};

// What the core keeps for this door beside a net.
struct Places {
  std::vector<int> inputs;  // which of the region's are the net's
  std::vector<GivenOutput> outputs;
};

class Region {
 public:
  // Constants of `ops` must live as long.
  Region(HostGraph ops, RegionSettings settings);
  // Writes what the option `calibration` had it collect.
  ~Region();
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;

  Signature signature(std::span<const RunInput> inputs) const;
  softneuro::Region& core() { return *core_; }
  static const Places& places(const Ready& ready) { return *static_cast<const Places*>(ready.door.get()); }
  bool open_shapes() const { return declared_inputs().empty(); }
  // Why no net is wanted for these inputs; empty if one is.
  std::string declined(std::span<const RunInput> inputs) const;
  LoweredCall lower(std::span<const RunInput> inputs);

  // Prepares for the declared shapes, if these are all fixed.
  void prepare_declared();
  // Why the host should keep the region for its declared shapes: by the verdict that is known, or that is found now on
  // made-up inputs. Empty if it should not, or if shapes are open.
  std::string declared_verdict();
  // What is worth keeping; without inputs and outputs, which are the kernel's.
  SavedRegion saved() const;
  // Before anything is prepared: plans and packings of an equal region. Those of another device, version or thread
  // count, or of weights that the program has replaced, are left out with a warning, or with options.strict refused by
  // an Error.
  void restore(SavedRegion saved, bool other_weights);
  // Notes the shapes of outputs that the host has computed, if they follow from the signature.
  void note_outputs(const Signature& signature, std::span<const RunInput> inputs, OutputDims dims);
  OutputShapes& output_shapes() { return output_shapes_; }
  // Whether the host's threads have much to do in a run of the region, as the last one took.
  bool host_takes_long() const { return host_ns_.load(std::memory_order_relaxed) > 200'000; }
  void note_host(int64_t ns) { host_ns_.store(ns, std::memory_order_relaxed); }
  // The region on the host's CPU provider. Throws NoHost.
  const HostRegion& host();
  const HostGraph& ops() const { return ops_; }
  // By output of the ops.
  const std::vector<bool>& outputs_in_steps() const { return in_steps_; }
  const RegionSettings& settings() const { return settings_; }
  int threads() const { return settings_.threads; }
  std::string name() const;
  // In words.
  static std::string text(std::span<const RunInput> inputs);

 private:
  std::vector<RunInput> declared_inputs() const;  // without data; empty if shapes are open
  Lowered lowered(std::span<const RunInput> inputs, WeightConstants& constants);
  bool is_sized(size_t input) const { return ops_.value(ops_.inputs[input]).sized; }
  std::string content() const;
  void note_outside(const OutsideCounts::Found& found) const;
  void note_prepared(const Signature& signature, const ShapeState& state, const Graph* graph);

  HostGraph ops_;
  std::vector<bool> in_steps_;
  RegionSettings settings_;
  OutputShapes output_shapes_;
  std::unique_ptr<softneuro::Region> core_;
  WeightConstants constants_;  // used while the core prepares, one at a time
  std::atomic<bool> lowers_{false}, tried_{false};
  std::atomic<int64_t> host_ns_{0};
  bool is_saved_ = false;  // it comes from a compiled model
  mutable std::mutex mutex_;
  std::map<Signature, Plan> plans_;  // that were made for the very shapes
  std::vector<PackedCache::Item> restored_;
  std::mutex host_mutex_;
  std::unique_ptr<HostRegion> host_;
  std::string no_host_;  // why there is none
};

}  // namespace softneuro::ort
