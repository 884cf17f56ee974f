// Fast hash of large memory, to tell weights apart. No defence against somebody who constructs collisions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace softneuro {

struct Hash128 {
  uint64_t low, high;
};
// The same on every machine of one byte order; reads at memory speed.
Hash128 bytes_hash_words(const void* data, size_t bytes);

// These 128 bits as 32 hex digits.
std::string bytes_hash(const void* data, size_t bytes);

// 64 bits, as quickly; `seed` joins the hashes of several pieces.
uint64_t bytes_hash64(const void* data, size_t bytes, uint64_t seed = 0);

}  // namespace softneuro
