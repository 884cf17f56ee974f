#include "base/hash.h"

#include <bit>
#include <cstdint>
#include <cstdio>
#include <cstring>

namespace softneuro {
namespace {

constexpr size_t lanes = 8;  // independent chains, so that one multiplication's latency hides behind the others
constexpr uint64_t odd = 0x9e3779b97f4a7c15ULL;

uint64_t load(const std::byte* from, size_t bytes) {
  uint64_t word = 0;
  std::memcpy(&word, from, bytes);
  return word;
}

uint64_t finish(uint64_t x) {
  x = (x ^ (x >> 32)) * 0xd6e8feb86659fd93ULL;
  x = (x ^ (x >> 32)) * 0xd6e8feb86659fd93ULL;
  return x ^ (x >> 32);
}

struct Chains {
  uint64_t at[lanes];
};

Chains chains_of(const void* data, size_t bytes) {
  const auto* from = static_cast<const std::byte*>(data);
  Chains chains;
  for (size_t i = 0; i < lanes; ++i) chains.at[i] = (i + 1) * odd;
  constexpr size_t stripe = lanes * sizeof(uint64_t);
  size_t left = bytes;
  for (; left >= stripe; left -= stripe, from += stripe) {
    // The rotation carries a word's high bits to where the next multiplication spreads them.
    for (size_t i = 0; i < lanes; ++i) chains.at[i] = std::rotl((chains.at[i] ^ load(from + 8 * i, 8)) * odd, 31);
  }
  for (size_t i = 0; left > 0; ++i) {
    const size_t count = left < 8 ? left : 8;
    chains.at[i] = std::rotl((chains.at[i] ^ load(from, count)) * odd, 31);
    from += count;
    left -= count;
  }
  return chains;
}

}  // namespace

uint64_t bytes_hash64(const void* data, size_t bytes, uint64_t seed) {
  uint64_t hash = finish(seed ^ bytes);
  for (const uint64_t chain : chains_of(data, bytes).at) hash = finish(hash ^ chain);
  return hash;
}

Hash128 bytes_hash_words(const void* data, size_t bytes) {
  const Chains chains = chains_of(data, bytes);
  uint64_t low = bytes, high = ~bytes;
  for (const uint64_t chain : chains.at) {
    low = finish(low ^ chain);
    high = finish(high + std::rotl(chain, 23));
  }
  return {low, high};
}

std::string bytes_hash(const void* data, size_t bytes) {
  const auto [low, high] = bytes_hash_words(data, bytes);
  char hex[33];
  std::snprintf(hex, sizeof hex, "%016llx%016llx", static_cast<unsigned long long>(low),
                static_cast<unsigned long long>(high));
  return hex;
}

}  // namespace softneuro
