// One call of a region that finds no net ready.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/arena.h"
#include "base/error_measure.h"
#include "providers/ort/run/region.h"
#include "runtime/call.h"

namespace softneuro::ort {

// The session's run that a call is part of.
class SessionRun {
 public:
  virtual ~SessionRun() = default;
  virtual std::span<const OrtValue* const> inputs() const = 0;
  // Always the same one for an output, whose shape cannot change once it is told.
  virtual OrtValue* output(size_t index, std::span<const int64_t> dims) = 0;
  virtual const ParallelFor& pool() const = 0;
  // Runs what has threads of its own.
  virtual void alone(const std::function<void()>& work) = 0;
};

class OrtRegionCall : public RegionCall {
 public:
  // Outside of sessions' runs. `has_values`: inputs are more than shapes.
  OrtRegionCall(Region& region, std::span<const RunInput> inputs, bool has_values);
  OrtRegionCall(Region& region, const Signature& signature, std::span<const RunInput> inputs, SessionRun& run);

  LoweredCall lower() override { return region_.lower(inputs_); }
  void run_host() override;
  void run_net(const Ready& ready) override;
  double error(double max_error) override;
  int threads() const override { return region_.threads(); }
  bool has_values() const override { return has_values_; }
  bool made_up() const override { return run_ == nullptr; }
  bool open_shapes() const override { return region_.open_shapes(); }
  // Shapes that a model fixes are worth a plan of their own.
  bool anew() const override { return !region_.open_shapes(); }
  std::string declined() const override { return region_.declined(inputs_); }
  void progress(int done, int total) override;
  std::string inputs() const override { return Region::text(inputs_); }

  // By the region's outputs: what the last run of a side has given.
  struct Result {
    std::vector<int64_t> dims;
    DType type = DType::float32;
    const void* data = nullptr;
  };
  std::vector<Result> net_results() const;
  std::vector<Result> host_results() const;
  // Whether the host has written its results into the session's outputs.
  bool in_place() const { return !outputs_.empty(); }

 private:
  Region& region_;
  const std::span<const RunInput> inputs_;
  const bool has_values_;
  const Signature* const signature_ = nullptr;
  SessionRun* const run_ = nullptr;
  std::vector<ValueOwner> owners_;
  std::vector<const OrtValue*> values_;  // the inputs as the host takes them
  std::vector<OrtValue*> outputs_;       // the session's, if their shapes are known ahead
  std::vector<ValueOwner> hosts_, truths_;
  std::shared_ptr<const Net> net_;
  std::shared_ptr<const void> door_;
  std::vector<AlignedBuffer> memory_;  // of the net's outputs

  const OrtValue* host_value(size_t output) const { return in_place() ? outputs_[output] : hosts_[output].get(); }
};

// Values like those of a normalised input or of an image, the same at every call. Integers that may be indices are 0
// or 1.
HostTensor made_up(DType type, std::vector<int64_t> dims);

}  // namespace softneuro::ort
