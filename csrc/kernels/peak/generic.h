// Microbenchmarks over Vf. Contract: peak.h.
#pragma once

#include "kernels/peak/peak.h"
#include "kernels/unroll.h"

namespace softneuro::SN_ISA {
namespace peak {

// More chains than latency times units of any CPU so far (4 x 2), within the registers.
constexpr int chains = registers >= 32 ? 24 : 12;
constexpr int step = 8;  // vectors per turn of a walk

[[gnu::flatten]] inline float fma_rounds(int64_t rounds) {
  Vf sum[chains];
  unroll<chains>([&](auto i) { sum[i] = set(static_cast<float>(i)); });
  const Vf a = set(0.5f), b = set(0.25f);  // the chains settle at 0.5: no denormal number, no overflow
  for (int64_t round = 0; round < rounds; ++round) {
    unroll<chains>([&](auto i) { sum[i] = softneuro::SN_ISA::fma(sum[i], a, b); });
  }
  Vf total = zero();
  unroll<chains>([&](auto i) { total = total + sum[i]; });
  return reduce_add(total);
}

[[gnu::flatten]] inline float read(const float* src, int64_t count) {
  Vf sum[step];
  unroll<step>([&](auto i) { sum[i] = zero(); });
  for (int64_t at = 0; at < count; at += step * lanes) {
    unroll<step>([&](auto i) { sum[i] = sum[i] + load(src + at + i * lanes); });
  }
  Vf total = zero();
  unroll<step>([&](auto i) { total = total + sum[i]; });
  return reduce_add(total);
}

[[gnu::flatten]] inline void write(float* dst, int64_t count) {
  const Vf value = set(1.0f);
  for (int64_t at = 0; at < count; at += step * lanes) {
    unroll<step>([&](auto i) { store(dst + at + i * lanes, value); });
  }
}

[[gnu::flatten]] inline void write_past_caches(float* dst, int64_t count) {
  const Vf value = set(1.0f);
  for (int64_t at = 0; at < count; at += step * lanes) {
    unroll<step>([&](auto i) { stream(dst + at + i * lanes, value); });
  }
}

}  // namespace peak
}  // namespace softneuro::SN_ISA

namespace softneuro {

SN_KERNEL_TABLE(PeakKernels, peak) = {
    .fma_flops = int64_t{2} * SN_ISA::peak::chains * SN_ISA::lanes,
    .granule = int64_t{SN_ISA::peak::step} * SN_ISA::lanes,
    .fma = SN_ISA::peak::fma_rounds,
    .read = SN_ISA::peak::read,
    .write = SN_ISA::peak::write,
    .stream = SN_ISA::peak::write_past_caches,
};

}  // namespace softneuro
