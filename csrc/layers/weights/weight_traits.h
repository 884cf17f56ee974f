// What is special about a weight's values: how many are zero, and in which pattern.
#pragma once

#include <string>

#include "base/shape.h"

namespace softneuro {

struct WeightTraits {
  double zeros = 0;       // fraction; -0.0 is a zero, NaN is not
  bool constant = false;  // all values are equal
  // In each group of `of` neighbours along axis 1 at most `most` are not zero; 0: no such pattern.
  int most = 0, of = 0;
  // Zeros come in whole blocks of so many indices of axis 0 by so many of axis 1; 1 by 1: they do not.
  int block_rows = 1, block_columns = 1;
  // The longest vectors, of 4, 8 or 16 neighbours along axis 0, of which a share worth skipping has zeros alone; 0:
  // none.
  int zero_vectors = 0;
  bool zero_blocks = false;  // the same of blocks of 16 indices of axis 0 by 4 of axis 1

  // Whether weights of a shape are looked at: matrices and filters that are not tiny.
  static bool matter(const Shape& shape);
  // Their class: empty for ordinary weights, else the zeros to 2.5 points and the pattern, "[zeros=0.9,2:4]".
  std::string str() const;
  // The traits that stand for all of this class.
  WeightTraits class_traits() const;
  friend bool operator==(const WeightTraits&, const WeightTraits&) = default;
};

// Looks at row-major values.
WeightTraits find_traits(const Shape& shape, const float* values);

}  // namespace softneuro
