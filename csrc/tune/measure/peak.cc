#include "tune/measure/peak.h"

#include <time.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <vector>

#include "base/arena.h"
#include "base/error.h"
#include "kernels/peak/peak.h"

namespace softneuro {
namespace {

// The thread's own time: a ceiling is no lower for another process having run meanwhile.
double thread_seconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

std::atomic<float> keep;  // results go here, so that nothing is optimised away

// Sum over the threads of each one's median rate: work() does `amount` in one call.
template <typename Work>
double rates(const ParallelFor& parallel_for, double seconds, double amount, const Work& work) {
  std::vector<double> medians(static_cast<size_t>(parallel_for.threads()));
  parallel_for(parallel_for.threads(), [&](int64_t thread) {
    work(thread);
    std::vector<double> samples;
    double start = thread_seconds();
    for (const double end = start + seconds; start < end || samples.size() < 3;) {
      work(thread);
      const double now = thread_seconds();
      samples.push_back(amount / std::max(now - start, 1e-9));
      start = now;
    }
    const auto middle = samples.begin() + static_cast<ptrdiff_t>(samples.size() / 2);
    std::nth_element(samples.begin(), middle, samples.end());
    medians[static_cast<size_t>(thread)] = *middle;
  });
  double sum = 0;
  for (const double rate : medians) sum += rate;
  return sum;
}

}  // namespace

double measure_fma(Isa isa, const ParallelFor& parallel_for, double seconds) {
  const PeakKernels* kernels = peak_kernels(isa);
  if (kernels == nullptr) throw Error("this machine lacks the level", std::string(isa_name(isa)));
  const int64_t rounds = (int64_t{1} << 24) / kernels->fma_flops;  // some hundred microseconds
  const double amount = static_cast<double>(rounds * kernels->fma_flops);
  return rates(parallel_for, seconds, amount, [&](int64_t) { keep = kernels->fma(rounds); });
}

double measure_bandwidth(Traffic traffic, size_t bytes, const ParallelFor& parallel_for, double seconds) {
  const PeakKernels& kernels = *peak_kernels(available_isas().front());
  const int64_t granule = kernels.granule;
  const int64_t count = std::max<int64_t>(1, static_cast<int64_t>(bytes / sizeof(float)) / granule) * granule;
  std::vector<AlignedBuffer> buffers;
  for (int i = 0; i < parallel_for.threads(); ++i) {
    buffers.emplace_back(static_cast<size_t>(count) * sizeof(float));
    std::memset(buffers.back().data(), 0, buffers.back().size());
  }
  const int64_t walks =
      std::max<int64_t>(1, (int64_t{1} << 20) / count);  // at least four megabytes between clock readings
  const double amount = static_cast<double>(walks * count) * sizeof(float);
  return rates(parallel_for, seconds, amount, [&](int64_t thread) {
    float* data = buffers[static_cast<size_t>(thread)].f32();
    for (int64_t walk = 0; walk < walks; ++walk) {
      if (traffic == Traffic::read) keep = kernels.read(data, count);
      if (traffic == Traffic::write) kernels.write(data, count);
      if (traffic == Traffic::stream) kernels.stream(data, count);
    }
  });
}

size_t bytes_within(int level, int threads) {
  const CacheInfo& cache = caches();
  const auto share = static_cast<size_t>(std::max(threads, 1));
  if (level == 1) return cache.l1d / 2;
  if (level == 2) return cache.l2 / 2;
  // A guest gets an unknown part of a server's cache: well above L2, far below all of it.
  const size_t in_l3 = std::min(cache.l3 / 4 / share, 4 * cache.l2);
  if (level == 3) return in_l3 > cache.l2 ? in_l3 : 0;
  return std::min(std::max(4 * cache.l3, size_t{64} << 20), size_t{512} << 20) / share;
}

}  // namespace softneuro
