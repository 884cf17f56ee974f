// What Strassen's product is worth, by counts of operations: where it is offered, and how deep.
#pragma once

#include <cstdint>

namespace softneuro {

inline constexpr int deepest_strassen = 3;  // levels of recursion

// Whether a level of recursion does fewer operations (Jiang et al., "MNN", eq. 9, without the additions of weights,
// which are packed).
bool strassen_saves(int64_t m, int64_t n, int64_t k);
// The recursion to try first, at least 1: as deep as a level saves more time than its additions are likely to take.
int strassen_depth(int64_t m, int64_t n, int64_t k);

}  // namespace softneuro
