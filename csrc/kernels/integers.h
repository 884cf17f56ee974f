// Integer helpers that kernels and their callers share. Constexpr functions of ints only: an instruction-set file may
// call them because they are always inlined.
#pragma once

#include <cstddef>

namespace softneuro {

[[gnu::always_inline]] constexpr int ceil_div(int a, int b) { return (a + b - 1) / b; }
[[gnu::always_inline]] constexpr int round_up(int a, int b) { return ceil_div(a, b) * b; }

}  // namespace softneuro
