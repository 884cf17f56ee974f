// Unit profiling: one layer's candidates, timed in turn under the conditions that they will meet in the net.
#pragma once

#include <chrono>
#include <span>
#include <string>
#include <vector>

#include "base/arena.h"
#include "base/team.h"
#include "base/threads.h"
#include "tune/candidates.h"

namespace softneuro {

// Robust centre of timings: the mean after the outer fifths are pulled in to the quantiles that bound them. Not the
// mean (one preemption spoils it), nor the minimum (it flatters routines whose luck varies). Reorders its argument.
double winsorised_mean(std::vector<double>& samples);

// Where weights are when a layer starts: a model larger than a cache finds them evicted from it, run after run.
enum class Coldness : unsigned char { hot, out_of_l2, out_of_l3 };
Coldness coldness_for(size_t model_weight_bytes);
std::string_view coldness_name(Coldness coldness);

class Profiler {
 public:
  using Clock = std::chrono::steady_clock;

  Profiler(int threads, const ParallelFor& parallel_for, Coldness coldness);

  // Times the candidates interleaved and sets seconds and measured. Drops out of the rounds what is clearly slower than
  // the leader. Spends little more than `allowance` seconds, but at least one sample each.
  void measure(const Problem& problem, std::span<Candidate* const> candidates, double allowance);
  double measure_adapt(const TensorDesc& desc, const Routine& routine, double allowance);

 private:
  struct Contender;
  void prepare_blobs(const Problem& problem);
  void settle(const Problem& problem, const Contender& contender, bool has_weights, const ParallelFor& parallel_for);
  static void set_pace(std::vector<Contender>& contenders);
  double time_once(const Contender& contender, const ParallelFor& parallel_for);
  void race(const Problem& problem, std::vector<Contender>& contenders, bool has_weights, double allowance,
            const ParallelFor& parallel_for);

  int threads_;
  const ParallelFor& host_;
  Team team_;  // as in a net's run
  Coldness coldness_;
  AlignedBuffer flush_;                // read through to evict weights
  std::vector<AlignedBuffer> inputs_;  // large enough for every candidate's layout
  AlignedBuffer output_, workspace_;
};

}  // namespace softneuro
