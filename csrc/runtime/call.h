// What a door supplies for one call of a region that finds no net ready.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "graph/graph.h"
#include "runtime/net_cache.h"

namespace softneuro {

// There is no host to run the region, to compare with or to fall back on.
class NoHost : public Error {
 public:
  using Error::Error;
};

// The caller's to mend, no reason to leave a region to the host.
class CallersError : public Error {
 public:
  using Error::Error;
};

// A region's graph for one signature.
struct LoweredCall {
  Graph graph;  // optimised
  // It knows the weights as they are, if they may change: it has learnt them ahead of whatever reads them from here on.
  std::shared_ptr<const PaidRuns> runs;
  std::vector<std::vector<int64_t>> orders;  // as of Ready
  std::shared_ptr<const void> door;          // as of Ready
};

class RegionCall {
 public:
  virtual ~RegionCall() = default;
  virtual LoweredCall lower() = 0;
  // Each runs the region on the call's inputs, keeping the results. What the host raises is thrown as it is: it is the
  // caller's. Throws NoHost.
  virtual void run_host() = 0;
  virtual void run_net(const Ready& ready) = 0;
  // In the place of a net that has lost: the host, or the regions between its steps.
  virtual void run_instead() { run_host(); }
  // The worst error of the last net's results, on a scale on which max_error is allowed. The host's are what is right,
  // unless the door knows better. Throws Error if the results differ in shape.
  virtual double error(double max_error) = 0;
  virtual int threads() const = 0;  // of nets
  // Whether inputs have values, or are mere shapes that nothing can be run on.
  virtual bool has_values() const { return true; }
  // Whether values are made up: they tell times, but not what roundings to grids of real values' do.
  virtual bool made_up() const { return false; }
  // Whether calls of other shapes may follow.
  virtual bool open_shapes() const { return true; }
  // Why no net is wanted for these inputs; empty if one is.
  virtual std::string declined() const { return {}; }
  // Whether a plan is wanted that was made for the very shapes at hand.
  virtual bool anew() const { return false; }
  // Told of measuring, now and then.
  virtual void progress(int /*done*/, int /*total*/) {}
  // The inputs in words.
  virtual std::string inputs() const = 0;
};

}  // namespace softneuro
