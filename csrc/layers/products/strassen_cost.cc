#include "layers/products/strassen_cost.h"

namespace softneuro {
namespace {

// Multiply-adds that a level saves, less those that its additions are worth.
double level_gain(int64_t rows, int64_t columns, int64_t length, double addition, double write_back) {
  const auto m = static_cast<double>(rows), n = static_cast<double>(columns), k = static_cast<double>(length);
  const double additions = 4 * m * k / 4 + 2 * m * n / 4;
  return m * n * k / 8 - addition * additions - write_back * 5 * m * n / 4;
}

}  // namespace

bool strassen_saves(int64_t m, int64_t n, int64_t k) { return level_gain(m, n, k, 1, 1) > 0; }

int strassen_depth(int64_t m, int64_t n, int64_t k) {
  // An addition reads and writes memory near the core, which takes as long as several multiply-adds in registers.
  constexpr double addition = 8, write_back = 3;
  int depth = 1;
  while (depth < deepest_strassen && level_gain(m >> depth, n >> depth, k >> depth, addition, write_back) > 0) ++depth;
  return depth;
}

}  // namespace softneuro
