// Integer helpers that kernels and their callers share. Constexpr functions of integers only: an instruction-set file
// may call them because they are always inlined.
#pragma once

#include <cstddef>

namespace softneuro {

template <typename A, typename B>
[[gnu::always_inline]] constexpr auto ceil_div(A a, B b) {
  return (a + b - 1) / b;
}
template <typename A, typename B>
[[gnu::always_inline]] constexpr auto round_up(A a, B b) {
  return ceil_div(a, b) * b;
}

}  // namespace softneuro
