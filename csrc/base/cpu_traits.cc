#include "base/cpu_traits.h"

#include "base/arch.h"

namespace softneuro {
namespace {

bool is_amd() {
  static const bool amd = cpu_id().starts_with("amd-");
  return amd;
}

}  // namespace

bool halves_512_bits() {
  static const bool halves = cpu_id().starts_with("amd-25-");
  return halves;
}

bool adds_beside_fmas() { return is_amd(); }

bool stores_hide_misses() { return is_amd(); }

bool permutes_bytes() {
#if defined(__x86_64__)
  static const bool permutes = __builtin_cpu_supports("avx512vbmi");
  return permutes;
#else
  return false;
#endif
}

}  // namespace softneuro
