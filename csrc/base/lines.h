// Sizes in whole cache lines. Always inlined, so that files for one instruction set may call them.
#pragma once

#include <cstddef>

namespace softneuro {

inline constexpr size_t line_bytes = 64;
inline constexpr int line_floats = 16;

[[gnu::always_inline]] constexpr size_t round_to_line(size_t bytes) {
  return (bytes + line_bytes - 1) / line_bytes * line_bytes;
}
template <typename Int>
[[gnu::always_inline]] constexpr Int whole_lines(Int floats) {
  return (floats + line_floats - 1) / line_floats * line_floats;
}
// Floats of an odd number of lines: what is so far apart does not compete for the same sets of a cache.
template <typename Int>
[[gnu::always_inline]] constexpr Int odd_lines(Int floats) {
  return ((floats + line_floats - 1) / line_floats | 1) * line_floats;
}

}  // namespace softneuro
