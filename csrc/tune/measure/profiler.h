// Unit profiling: one layer's candidates, timed in turn under the conditions that they will meet in the net.
#pragma once

#include <chrono>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/arena.h"
#include "base/team.h"
#include "base/threads.h"
#include "tune/measure/samples.h"
#include "tune/measure/stand_ins.h"
#include "tune/measure/timekeeper.h"
#include "tune/search/candidates.h"

namespace softneuro {

// Where weights are when a layer starts: a model larger than a cache finds them evicted from it, run after run.
enum class CacheState : unsigned char { hot, out_of_l2, out_of_l3 };
CacheState cache_state_for(size_t model_weight_bytes);
std::string_view cache_state_name(CacheState cache_state);

// Whether values of no meaning will do. Not for a step of the host that takes integers: they may be places in
// something.
bool measurable(const Problem& problem);

class Profiler {
 public:
  using Clock = std::chrono::steady_clock;

  Profiler(int threads, const ParallelFor& parallel_for, CacheState cache_state, Timekeeper& timekeeper);

  // One candidate of a layer.
  struct Entry {
    const Problem* problem;
    const Candidate* candidate;
  };

  // How often each is run at most, and for how long all of them.
  struct Effort {
    int rounds;
    double seconds;
  };

  // Times the candidates interleaved, those first that are expected to be fast, and sets seconds and measured. Drops
  // out of the rounds what is clearly slower than the leader. Spends little more than the effort: those that it does
  // not come to keep their guess, and so do steps of the host that are not measurable or that refuse the values.
  void measure(const Problem& problem, std::span<Candidate* const> candidates, const Effort& effort);
  double measure_adapt(const TensorDesc& desc, const Routine& routine, const Effort& effort);

  // Seconds of each, timed in turn, so that they compare; nothing if there was no time for a fair number of rounds.
  std::vector<double> compare(std::span<const Entry> entries, double allowance);

 private:
  struct Contender;
  void prepare_blobs(const Entry& entry);
  TensorView blob(bool output, size_t number, const TensorDesc& desc, const Schema& schema);
  Contender contender(const Entry& entry);
  static size_t held_bytes(const Entry& entry);
  void settle(const Contender& contender, const ParallelFor& parallel_for);
  double time_once(const Contender& contender, const ParallelFor& parallel_for);
  void warm_up(std::vector<Contender>& contenders, const ParallelFor& parallel_for);
  void sample(Contender& contender, const ParallelFor& parallel_for);
  void first_round(std::vector<Contender>& contenders, double seconds, const ParallelFor& parallel_for);
  void measure_host(const Problem& problem, std::span<Candidate* const> candidates, const Effort& effort);
  void race(std::vector<Contender>& contenders, std::span<Candidate* const> candidates, const Effort& effort,
            const ParallelFor& parallel_for);

  int threads_;
  const ParallelFor& host_;
  Team team_;  // as in a net's run
  CacheState cache_state_;
  Timekeeper& timekeeper_;
  AlignedBuffer flush_;  // read through to evict weights
  // By element type and number, large enough for every candidate's layout.
  std::map<std::pair<DType, size_t>, AlignedBuffer> inputs_, outputs_;
  AlignedBuffer workspace_;
  StandIns stand_ins_;
};

}  // namespace softneuro
