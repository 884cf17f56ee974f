// One call of a region that finds no net ready.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/arena.h"
#include "providers/ort/region.h"
#include "runtime/call.h"

namespace softneuro::ort {

class OrtRegionCall : public RegionCall {
 public:
  // `pool`: the session's own, while it runs; else one of ours. `has_values`: inputs are more than shapes.
  OrtRegionCall(Region& region, std::span<const RunInput> inputs, bool has_values, const ParallelFor* pool = nullptr);

  LoweredCall lower() override { return region_.lower(inputs_); }
  void run_host() override;
  void run_net(const Ready& ready) override;
  double error(double max_error) override;
  int threads() const override { return region_.threads(); }
  bool has_values() const override { return has_values_; }
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

 private:
  Region& region_;
  const std::span<const RunInput> inputs_;
  const bool has_values_;
  const ParallelFor* const pool_;
  std::vector<ValueOwner> owners_;
  std::vector<const OrtValue*> values_;  // the inputs as the host takes them
  std::vector<ValueOwner> hosts_, truths_;
  bool truth_known_ = false;
  std::shared_ptr<const Net> net_;
  std::shared_ptr<const void> door_;
  std::vector<AlignedBuffer> memory_;  // of the net's outputs
};

// Values like those of a normalised input or of an image, the same at every call. Integers that may be indices are 0
// or 1.
HostTensor made_up(DType type, std::vector<int64_t> dims);

}  // namespace softneuro::ort
