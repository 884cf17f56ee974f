// The shapes of a region's outputs from those of its inputs, in a microsecond: arithmetic on sizes that simple rules
// have made of the ops. Ops without a rule leave the shapes behind them open.
#pragma once

#include <span>
#include <vector>

#include "providers/ort/op_graph.h"

namespace softneuro::ort {

// By output.
using OutputDims = std::vector<std::vector<int64_t>>;

// A value that is computed of others before it.
struct SizeTerm {
  enum class Op : unsigned char {
    constant,  // a
    size,      // of input a along axis b
    value,     // element b of input a
    add,       // terms a and b, as in what follows
    sub,       // none if it is negative
    mul,
    div,  // rounded down; none unless both are sizes
    min,
    broadcast,
    unless_zero,  // a; b if a is 0
    unless_open,  // a; b if a is -1
    positive,     // a; none if it is not
  };
  Op op;
  int64_t a = 0, b = 0;
  auto operator<=>(const SizeTerm&) const = default;
};

class ShapeProgram {
 public:
  explicit ShapeProgram(const OpGraph& ops);
  // Empty if the sizes are not what the rules take them for: then only a run tells.
  OutputDims run(std::span<const RunInput> inputs) const;

 private:
  bool fits(std::span<const RunInput> inputs) const;

  bool complete_ = false;                     // it tells the shapes of all outputs; else it tells none
  std::vector<std::vector<int64_t>> inputs_;  // by input: sizes that it must have, -1: any
  std::vector<SizeTerm> terms_;
  std::vector<std::vector<int>> outputs_;  // terms
};

}  // namespace softneuro::ort
