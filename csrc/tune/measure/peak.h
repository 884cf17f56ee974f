// The machine's measured ceilings: what a routine's time is held against.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/arch.h"
#include "base/threads.h"

namespace softneuro {

enum class Traffic : unsigned char { read, write, stream };  // stream: writes past the caches

// Floating-point operations per second of multiply-adds in registers, all threads of parallel_for together. The level
// must be available.
double measure_fma(Isa isa, const ParallelFor& parallel_for, double seconds);

// Bytes per second over and over through a buffer of `bytes` per thread: choose its size by the cache in question. With
// the best level available. Throws Error when memory is short.
double measure_bandwidth(Traffic traffic, size_t bytes, const ParallelFor& parallel_for, double seconds);

// Bytes per thread whose traffic is served by cache level 1, 2 or 3, or by memory (4); 0 if there is no such level.
size_t bytes_within(int level, int threads);

}  // namespace softneuro
