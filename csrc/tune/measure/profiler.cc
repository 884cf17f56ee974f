#include "tune/measure/profiler.h"

#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <cmath>

#include "base/arch.h"
#include "base/log.h"
#include "layers/contract/registry.h"
#include "tune/measure/probes.h"

namespace softneuro {
namespace {

// What runs for long is stable without many samples.
constexpr int least_rounds = 3;
constexpr double most_sampled_seconds = 0.06;  // of one contender's samples, beyond these
constexpr double least_seconds = 0.01;         // for the first round, whatever the effort
// A run that was interrupted says nothing, and is repeated, unless none of its length goes without.
constexpr int most_attempts = 3;
constexpr double slice_seconds = 0.02;
// A run without weights evicted, after which more runs are a waste.
constexpr double hopeless = 3;
// Bytes of packed weights held for one layer's race: a larger race is run in heats, for tuning is not to need more
// memory than the net will.
constexpr size_t interleave_limit = size_t{64} << 20;

// How often the scheduler has taken the core from this thread.
int64_t interruptions() {
  rusage usage;
  return getrusage(RUSAGE_THREAD, &usage) == 0 ? usage.ru_nivcsw : 0;
}

// Which multiple of the best time leaves a race. Timings scatter by some ten per cent, a single one may be twice what
// it should: the more samples, the tighter. Long ones scatter less.
double gate_after(int round, double best) {
  constexpr double long_run = 3e-3;
  if (best > long_run) return round < 2 ? 1.8 : round < 3 ? 1.3 : 1.12;
  return round < 2 ? 2.5 : round < 3 ? 1.8 : round < 5 ? 1.35 : 1.15;
}

size_t weight_bytes(const Problem& problem) {
  size_t total = 0;
  for (const auto& [role, value] : problem.layer->weights) total += bytes(value->desc(), f32_nchw);
  return total;
}

}  // namespace

CacheState cache_state_for(size_t model_weight_bytes) {
  const CacheInfo& cache = caches();
  if (cache.l3 != 0 && model_weight_bytes > cache.l3 / 2) return CacheState::out_of_l3;
  return model_weight_bytes > cache.l2 / 2 ? CacheState::out_of_l2 : CacheState::hot;
}

std::string_view cache_state_name(CacheState cache_state) {
  constexpr std::string_view names[] = {"hot", "l2cold", "l3cold"};
  return names[static_cast<int>(cache_state)];
}

bool measurable(const Problem& problem) {
  return problem.layer->host == nullptr || std::none_of(problem.in.begin(), problem.in.end(), [](const auto& desc) {
           return desc.kind == ValueKind::integer;
         });
}

struct Profiler::Contender {
  const Problem* problem;
  const Candidate* candidate;
  std::unique_ptr<const Prepared> prepared;
  std::vector<TensorView> in, outs;
  bool has_weights;
  std::vector<double> samples = {};
  double best = INFINITY, spent = 0;

  void add(double seconds) {
    samples.push_back(seconds);
    best = std::min(best, seconds);
    spent += seconds;
  }
};

Profiler::Profiler(int threads, const ParallelFor& parallel_for, CacheState cache_state, Timekeeper& timekeeper)
    : threads_(threads), host_(parallel_for), team_(threads), cache_state_(cache_state), timekeeper_(timekeeper) {
  const CacheInfo& cache = caches();
  if (cache_state == CacheState::out_of_l2) flush_ = AlignedBuffer(2 * cache.l2 * static_cast<size_t>(threads));
  // A shared server cache can be far larger than what one guest gets of it: 48 MiB evicts enough.
  if (cache_state == CacheState::out_of_l3) flush_ = AlignedBuffer(std::min(cache.l3 + cache.l3 / 4, size_t{48} << 20));
  fill(flush_);
}

void Profiler::prepare_blobs(const Entry& entry) {
  const Problem& problem = *entry.problem;
  const Candidate& candidate = *entry.candidate;
  for (size_t i = 0; i < problem.in.size(); ++i)
    grow(inputs_[{candidate.in[i].dtype, i}], problem.in[i], candidate.in[i]);
  for (size_t k = 0; k < problem.outs.size(); ++k)
    grow(outputs_[{candidate.outs[k].dtype, k}], problem.outs[k], candidate.outs[k]);
}

TensorView Profiler::blob(bool output, size_t number, const TensorDesc& desc, const Schema& schema) {
  void* const data = (output ? outputs_ : inputs_).at({schema.dtype, number}).data();
  return {data, desc.shape, schema, likely_strides(desc.shape, schema.layout)};
}

// Puts the caches in the state of a net's run: weights evicted as far as the model's size says, while outputs and
// workspaces lie in memory that the steps before used, and inputs were just written.
void Profiler::settle(const Contender& contender, const ParallelFor& parallel_for) {
  if (!contender.has_weights || flush_.size() == 0) return;
  const auto stage = timekeeper_.in("evict");
  std::atomic<uint64_t> sink{0};
  parallel_for(threads_, [&](int64_t task) {
    const Range part = split_range(static_cast<int64_t>(flush_.size() / 64), threads_, task);
    const auto* lines = static_cast<const uint64_t*>(flush_.data());
    uint64_t sum = 0;
    for (int64_t line = part.begin; line < part.end; ++line) sum += lines[line * 8];
    sink += sum;
    // Written, not only read; a byte of each line that keeps its value.
    const auto touch_lines = [](void* data, int64_t begin, int64_t end) {
      auto* const bytes = static_cast<volatile unsigned char*>(data);
      for (int64_t i = begin; i < end; i += 64) bytes[i] = bytes[i];
    };
    const auto touch = [&](void* data, size_t bytes) {
      const Range own = split_range(static_cast<int64_t>((bytes + 63) / 64), threads_, task);
      touch_lines(data, own.begin * 64, std::min(own.end * 64, static_cast<int64_t>(bytes)));
    };
    const auto touch_view = [&](const TensorView& view) {
      touch(view.data, dtype_bytes(view.schema.dtype, spanned_elements(view.shape, view.strides, view.schema.layout)));
    };
    for (const TensorView& view : contender.outs) touch_view(view);
    const WorkspaceSize size = contender.prepared->workspace();
    const Workspace workspace(size, workspace_.data());
    touch(workspace.shared(), size.shared);
    for (int64_t own = task; own < size.tasks; own += threads_)
      touch_lines(workspace.task(own), 0, static_cast<int64_t>(size.task));
    for (const TensorView& view : contender.in) touch_view(view);
  });
}

double Profiler::time_once(const Contender& contender, const ParallelFor& parallel_for) {
  const Workspace workspace(contender.prepared->workspace(), workspace_.data());
  const RunArgs args{contender.in.data(), contender.outs.data(), workspace, parallel_for};
  double least = INFINITY;
  for (int attempt = 0; attempt < most_attempts; ++attempt) {
    const int64_t before = interruptions();
    const auto start = Clock::now();
    contender.prepared->run(args);
    least = std::min(least, std::chrono::duration<double>(Clock::now() - start).count());
    if (interruptions() == before || least > slice_seconds) break;
  }
  return least;
}

// Page faults, code into caches.
void Profiler::warm_up(std::vector<Contender>& contenders, const ParallelFor& parallel_for) {
  const auto stage = timekeeper_.in("warm up");
  for (Contender& contender : contenders) time_once(contender, parallel_for);
}

// Blobs are to be prepared already, for they move when they grow.
Profiler::Contender Profiler::contender(const Entry& entry) {
  const auto stage = timekeeper_.in("pack");
  const Problem& problem = *entry.problem;
  const auto& [routine, tuning] = entry.candidate->choice;
  Contender contender{.problem = &problem,
                      .candidate = entry.candidate,
                      .prepared = routine->prepare(problem, tuning, stand_ins_.packed(*routine, problem, tuning)),
                      .in = {},
                      .outs = {},
                      .has_weights = weight_bytes(problem) > caches().l1d};
  for (size_t i = 0; i < problem.in.size(); ++i)
    contender.in.push_back(blob(false, i, problem.in[i], entry.candidate->in[i]));
  for (size_t k = 0; k < problem.outs.size(); ++k) {
    const int updated = updated_input(layer_def(problem.layer->type), *problem.layer, static_cast<int>(k));
    contender.outs.push_back(updated >= 0 ? contender.in[static_cast<size_t>(updated)]
                                          : blob(true, k, problem.outs[k], entry.candidate->outs[k]));
  }
  const size_t bytes = contender.prepared->workspace().bytes();
  if (workspace_.size() < bytes) workspace_ = AlignedBuffer(bytes);
  return contender;
}

// Bytes of packed weights that an entry has to itself.
size_t Profiler::held_bytes(const Entry& entry) {
  const auto& [routine, tuning] = entry.candidate->choice;
  return StandIns::stands_in(*routine, *entry.problem, tuning) ? 0 : entry.candidate->packed_bytes;
}

// One warm run and one sample of each, but for those that are too slow by far: page faults and code that is not in the
// caches make no run slower than that. A run may be interrupted, two in a row hardly are.
void Profiler::first_round(std::vector<Contender>& contenders, double seconds, const ParallelFor& parallel_for) {
  const double start = timekeeper_.now();
  double best = INFINITY;
  for (Contender& contender : contenders) {
    if (std::isfinite(best) && timekeeper_.now() - start > seconds) return;
    double warm;
    {
      const auto stage = timekeeper_.in("warm up");
      warm = time_once(contender, parallel_for);
      if (warm > hopeless * best) warm = std::min(warm, time_once(contender, parallel_for));
    }
    if (warm > hopeless * best) {
      contender.add(warm);
      continue;
    }
    sample(contender, parallel_for);
    best = std::min(best, contender.best);
  }
}

void Profiler::sample(Contender& contender, const ParallelFor& parallel_for) {
  settle(contender, parallel_for);
  const auto stage = timekeeper_.in("time " + contender.problem->layer->type);
  contender.add(time_once(contender, parallel_for));
}

void Profiler::race(std::vector<Contender>& contenders, std::span<Candidate* const> candidates, const Effort& effort,
                    const ParallelFor& parallel_for) {
  const double start = timekeeper_.now();
  first_round(contenders, std::max(effort.seconds, least_seconds), parallel_for);
  for (int round = 1; round < effort.rounds && timekeeper_.now() - start < effort.seconds; ++round) {
    const auto leader = std::min_element(contenders.begin(), contenders.end(),
                                         [](const auto& a, const auto& b) { return a.best < b.best; });
    const double best = leader->best;
    const size_t bytes = leader->candidate->packed_bytes;
    // Smaller packed weights may be worth more time.
    const double gate = gate_after(round, best), wide_gate = std::max(gate, 1.4);
    size_t running = 0;
    for (Contender& contender : contenders) {
      const bool smaller = 2 * contender.candidate->packed_bytes < bytes;
      if (contender.samples.empty() || contender.best > best * (smaller ? wide_gate : gate)) continue;
      if (round >= least_rounds && contender.spent > most_sampled_seconds) continue;
      ++running;
      sample(contender, parallel_for);
    }
    if (running == 0 || (running == 1 && round >= 4)) break;
  }
  std::vector<std::vector<double>*> samples;
  for (Contender& contender : contenders) {
    if (!contender.samples.empty()) samples.push_back(&contender.samples);
  }
  set_pace(samples);
  for (size_t i = 0; i < contenders.size(); ++i) {
    if (contenders[i].samples.empty()) continue;
    candidates[i]->seconds = winsorised_mean(contenders[i].samples);
    candidates[i]->measured = true;
  }
}

// With the host's threads free, as they are in a net's run.
void Profiler::measure_host(const Problem& problem, std::span<Candidate* const> candidates, const Effort& effort) {
  if (!measurable(problem)) return;
  for (const Candidate* candidate : candidates) prepare_blobs({&problem, candidate});
  std::vector<Contender> contenders;
  for (const Candidate* candidate : candidates) contenders.push_back(contender({&problem, candidate}));
  try {
    race(contenders, candidates, effort, host_);
  } catch (const std::exception& error) {
    log_info("tune: " + problem.layer->name + " refuses values of no meaning: " + error.what());
  }
}

void Profiler::measure(const Problem& problem, std::span<Candidate* const> candidates, const Effort& effort) {
  if (problem.layer->host != nullptr) return measure_host(problem, candidates, effort);
  for (const Candidate* candidate : candidates) prepare_blobs({&problem, candidate});
  size_t held = 0;
  std::vector<Contender> contenders;
  std::vector<Candidate*> heat;
  const auto start_race = [&](double share) {
    const Effort own{effort.rounds, share * effort.seconds};
    team_.run(host_, [&](const ParallelFor& parallel_for) { race(contenders, heat, own, parallel_for); });
    contenders.clear();
    heat.clear();
    held = 0;
  };
  for (Candidate* candidate : candidates) {
    if (candidate->choice.routine->info().view) {
      candidate->seconds = 0;
      candidate->measured = true;
      continue;
    }
    contenders.push_back(contender({&problem, candidate}));
    heat.push_back(candidate);
    held += held_bytes({&problem, candidate});
    if (held > interleave_limit) start_race(static_cast<double>(heat.size()) / static_cast<double>(candidates.size()));
  }
  if (!contenders.empty()) start_race(1);
}

std::vector<double> Profiler::compare(std::span<const Entry> entries, double allowance) {
  constexpr int most_rounds = 9, least_rounds = 3;
  double round_takes = 0;
  for (const Entry& entry : entries) round_takes += entry.candidate->seconds;
  if (least_rounds * round_takes > allowance) return {};
  for (const Entry& entry : entries) prepare_blobs(entry);
  std::vector<double> seconds;
  std::vector<Contender> contenders;
  // False if time is up too soon.
  const auto run = [&] {
    const double share = allowance * static_cast<double>(contenders.size()) / static_cast<double>(entries.size());
    int round = 0;
    team_.run(host_, [&](const ParallelFor& parallel_for) {
      warm_up(contenders, parallel_for);
      const auto start = Clock::now();
      for (double spent = 0; round < most_rounds && spent < share; ++round) {
        for (Contender& contender : contenders) {
          settle(contender, parallel_for);
          const auto stage = timekeeper_.in("one pace");
          contender.samples.push_back(time_once(contender, parallel_for));
        }
        spent = std::chrono::duration<double>(Clock::now() - start).count();
      }
    });
    for (Contender& contender : contenders) seconds.push_back(round > 0 ? winsorised_mean(contender.samples) : 0);
    contenders.clear();
    return round >= least_rounds;
  };
  size_t held = 0;
  for (const Entry& entry : entries) {
    contenders.push_back(contender(entry));
    held += held_bytes(entry);
    if (held <= interleave_limit && &entry != &entries.back()) continue;
    if (!run()) return {};
    held = 0;
  }
  return seconds;
}

double Profiler::measure_adapt(const TensorDesc& desc, const Routine& routine, const Effort& effort) {
  Layer layer;
  layer.type = "adapt";
  const Problem problem{&layer, {desc}, desc, threads_};
  Candidate candidate;
  candidate.choice = {&routine, routine.tunings(problem).front()};
  candidate.in = {routine.info().in};
  candidate.outs = {routine.info().out};
  Candidate* const one[] = {&candidate};
  measure(problem, one, effort);
  return candidate.seconds;
}

}  // namespace softneuro
