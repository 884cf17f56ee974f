#include "tune/profiler.h"

#include <algorithm>
#include <atomic>
#include <cmath>

#include "base/arch.h"

namespace softneuro {
namespace {

constexpr int max_samples = 15;
// Bytes of packed weights held for one layer's race: a larger race is run in heats, for tuning is not to need more
// memory than the net will.
constexpr size_t interleave_limit = size_t{64} << 20;

int64_t largest_blob(const Shape& shape) {
  int64_t elements = shape.elements();
  if (layout_fits(shape, Layout::blocked(16))) elements = physical_elements(shape, Layout::blocked(16));
  return elements;
}

void fill(AlignedBuffer& buffer) {
  // Any finite values of ordinary size do; a small generator avoids denormals and repeated zeros.
  uint32_t state = 12345;
  float* data = buffer.f32();
  for (size_t i = 0; i < buffer.size() / sizeof(float); ++i) {
    state = state * 1664525U + 1013904223U;
    data[i] = static_cast<float>(state >> 8) * (2.0F / 16777216.0F) - 1.0F;
  }
}

void grow(AlignedBuffer& buffer, const Shape& shape) {
  const size_t bytes = std::max(static_cast<size_t>(largest_blob(shape)) * sizeof(float), AlignedBuffer::alignment);
  if (buffer.size() >= bytes) return;
  buffer = AlignedBuffer(bytes);
  fill(buffer);
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return 0.5 * (values[(values.size() - 1) / 2] + values[values.size() / 2]);
}

size_t weight_bytes(const Problem& problem) {
  int64_t elements = 0;
  for (const auto& [role, value] : problem.layer->weights) elements += value->elements();
  return static_cast<size_t>(elements) * sizeof(float);
}

}  // namespace

double winsorised_mean(std::vector<double>& samples) {
  std::sort(samples.begin(), samples.end());
  const size_t n = samples.size(), cut = (n + 2) / 5;
  const double low = samples[cut], high = samples[n - 1 - cut];
  double sum = 0;
  for (const double sample : samples) sum += std::clamp(sample, low, high);
  return sum / static_cast<double>(n);
}

Coldness coldness_for(size_t model_weight_bytes) {
  const CacheInfo& cache = caches();
  if (cache.l3 != 0 && model_weight_bytes > cache.l3 / 2) return Coldness::out_of_l3;
  return model_weight_bytes > cache.l2 / 2 ? Coldness::out_of_l2 : Coldness::hot;
}

std::string_view coldness_name(Coldness coldness) {
  constexpr std::string_view names[] = {"hot", "l2cold", "l3cold"};
  return names[static_cast<int>(coldness)];
}

struct Profiler::Contender {
  Candidate* candidate;
  std::unique_ptr<const Prepared> prepared;
  std::vector<TensorView> in;
  TensorView out;
  std::vector<double> samples;
  double best = INFINITY;
};

// What slows all of a round is the machine, whose speed varies for seconds at a time: those that drop out early would
// be judged by the few rounds that they were in. Samples are brought to the pace of the middle round of those that
// stayed.
void Profiler::set_pace(std::vector<Contender>& contenders) {
  size_t rounds = 0;
  for (const Contender& contender : contenders) rounds = std::max(rounds, contender.samples.size());
  std::vector<double> middles;  // of those that stayed
  for (const Contender& contender : contenders) {
    middles.push_back(contender.samples.size() == rounds ? median(contender.samples) : 0);
  }
  for (size_t round = 0; round < rounds; ++round) {
    std::vector<double> paces;
    for (size_t i = 0; i < contenders.size(); ++i) {
      if (middles[i] > 0) paces.push_back(contenders[i].samples[round] / middles[i]);
    }
    if (paces.size() < 2) return;  // one alone may vary by itself
    const double pace = median(std::move(paces));
    for (Contender& contender : contenders) {
      if (pace > 0 && round < contender.samples.size()) contender.samples[round] /= pace;
    }
  }
}

Profiler::Profiler(int threads, const ParallelFor& parallel_for, Coldness coldness)
    : threads_(threads), host_(parallel_for), team_(threads), coldness_(coldness) {
  const CacheInfo& cache = caches();
  if (coldness == Coldness::out_of_l2) flush_ = AlignedBuffer(2 * cache.l2 * static_cast<size_t>(threads));
  // A shared server cache can be far larger than what one guest gets of it: 48 MiB evicts enough.
  if (coldness == Coldness::out_of_l3) flush_ = AlignedBuffer(std::min(cache.l3 + cache.l3 / 4, size_t{48} << 20));
  fill(flush_);
}

void Profiler::prepare_blobs(const Problem& problem) {
  inputs_.resize(std::max(inputs_.size(), problem.in.size()));
  for (size_t i = 0; i < problem.in.size(); ++i) grow(inputs_[i], problem.in[i].shape);
  grow(output_, problem.out.shape);
}

// Puts the caches in the state of a net's run: weights evicted as far as the model's size says, while outputs and
// workspaces lie in memory that the steps before used, and inputs were just written.
void Profiler::settle(const Problem& problem, const Contender& contender, bool has_weights,
                      const ParallelFor& parallel_for) {
  if (!has_weights || flush_.size() == 0) return;
  std::atomic<uint64_t> sink{0};
  parallel_for(threads_, [&](int64_t task) {
    const Range part = split_range(static_cast<int64_t>(flush_.size() / 64), threads_, task);
    const auto* lines = static_cast<const uint64_t*>(flush_.data());
    uint64_t sum = 0;
    for (int64_t line = part.begin; line < part.end; ++line) sum += lines[line * 8];
    sink += sum;
    const auto touch = [&](float* data, int64_t count) {
      const Range own = split_range(count, threads_, task);
      for (int64_t i = own.begin; i < own.end; i += 16) data[i] += 0.0F;
    };
    touch(output_.f32(), problem.out.shape.elements());
    const WorkspaceSize size = contender.prepared->workspace();
    const Workspace workspace(size, workspace_.data());
    touch(reinterpret_cast<float*>(workspace.shared()), static_cast<int64_t>(size.shared / sizeof(float)));
    for (int64_t own = task; own < size.tasks; own += threads_) {
      auto* const data = reinterpret_cast<float*>(workspace.task(own));
      for (size_t i = 0; i < size.task / sizeof(float); i += 16) data[i] += 0.0F;
    }
    for (size_t i = 0; i < problem.in.size(); ++i) touch(inputs_[i].f32(), problem.in[i].shape.elements());
  });
}

double Profiler::time_once(const Contender& contender, const ParallelFor& parallel_for) {
  const Workspace workspace(contender.prepared->workspace(), workspace_.data());
  const RunArgs args{contender.in.data(), contender.out, workspace, parallel_for};
  const auto start = Clock::now();
  contender.prepared->run(args);
  return std::chrono::duration<double>(Clock::now() - start).count();
}

void Profiler::race(const Problem& problem, std::vector<Contender>& contenders, bool has_weights, double allowance,
                    const ParallelFor& parallel_for) {
  for (Contender& contender : contenders) time_once(contender, parallel_for);  // page faults, code into caches
  const auto start = Clock::now();
  for (int round = 0; round < max_samples; ++round) {
    const auto leader = std::min_element(contenders.begin(), contenders.end(),
                                         [](const auto& a, const auto& b) { return a.best < b.best; });
    const double best = leader->best;
    const size_t bytes = leader->candidate->packed_bytes;
    // Timings scatter by some ten per cent, a single one may be twice what it should: the more samples, the tighter the
    // gate. Smaller packed weights may be worth more time.
    const double gate = round < 2 ? 4.0 : round < 3 ? 2.0 : round < 5 ? 1.4 : 1.15, wide_gate = std::max(gate, 1.4);
    size_t running = 0;
    for (Contender& contender : contenders) {
      const bool smaller = 2 * contender.candidate->packed_bytes < bytes;
      if (round > 0 && contender.best > best * (smaller ? wide_gate : gate)) continue;
      ++running;
      settle(problem, contender, has_weights, parallel_for);
      const double seconds = time_once(contender, parallel_for);
      contender.samples.push_back(seconds);
      contender.best = std::min(contender.best, seconds);
    }
    const double spent = std::chrono::duration<double>(Clock::now() - start).count();
    if (spent > allowance || (running == 1 && round >= 4)) break;
  }
  set_pace(contenders);
  for (Contender& contender : contenders) {
    contender.candidate->seconds = winsorised_mean(contender.samples);
    contender.candidate->measured = true;
  }
}

void Profiler::measure(const Problem& problem, std::span<Candidate* const> candidates, double allowance) {
  prepare_blobs(problem);
  const bool has_weights = weight_bytes(problem) > caches().l1d;
  const auto start_race = [&](std::vector<Contender>& contenders, double seconds) {
    team_.run(host_,
              [&](const ParallelFor& parallel_for) { race(problem, contenders, has_weights, seconds, parallel_for); });
  };
  size_t held = 0;
  std::vector<Contender> contenders;
  for (Candidate* candidate : candidates) {
    const Routine& routine = *candidate->choice.routine;
    if (routine.info().view) {
      candidate->seconds = 0;
      candidate->measured = true;
      continue;
    }
    Contender contender;
    contender.candidate = candidate;
    contender.prepared =
        routine.prepare(problem, candidate->choice.tuning, routine.pack(problem, candidate->choice.tuning));
    for (size_t i = 0; i < problem.in.size(); ++i) {
      contender.in.push_back(dense_view(inputs_[i].data(), problem.in[i].shape, candidate->in[i]));
    }
    contender.out = dense_view(output_.data(), problem.out.shape, candidate->out);
    const size_t bytes = contender.prepared->workspace().bytes();
    if (workspace_.size() < bytes) workspace_ = AlignedBuffer(bytes);
    contenders.push_back(std::move(contender));
    held += candidate->packed_bytes;
    if (held > interleave_limit) {
      held = 0;
      start_race(contenders, allowance / static_cast<double>(candidates.size()));
      contenders.clear();
    }
  }
  if (!contenders.empty()) start_race(contenders, allowance);
}

double Profiler::measure_adapt(const TensorDesc& desc, const Routine& routine, double allowance) {
  Layer layer;
  layer.type = "adapt";
  const Problem problem{&layer, {desc}, desc, threads_};
  Candidate candidate;
  candidate.choice = {&routine, routine.tunings(problem).front()};
  candidate.in = {routine.info().in};
  candidate.out = routine.info().out;
  Candidate* const one[] = {&candidate};
  measure(problem, one, allowance);
  return candidate.seconds;
}

}  // namespace softneuro
