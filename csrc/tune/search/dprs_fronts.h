// A factor graph whose entries are fronts of labels: partial plans, none of which has less of everything than another.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "tune/search/dprs_labels.h"
#include "tune/search/dprs_model.h"

namespace softneuro::dprs {

inline constexpr size_t most_bounds = 3;
using Amounts = std::array<double, 1 + most_bounds>;  // seconds, and what is bounded

inline double dot(const Amounts& a, const Amounts& b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2] + a[3] * b[3]; }

// A choice of a layer, or a chain of conversions of a blob.
struct Leaf {
  int layer = -1, value = 0;
  DprsChoice choice;  // none where another layer's leaf has it
  int blob = -1;
  std::vector<int> chain;  // schemas
};

// What labels consist of.
class Parts {
 public:
  int add(Leaf leaf) {
    leaves_.push_back(std::move(leaf));
    return -static_cast<int>(leaves_.size());
  }
  int join(int a, int b) {
    if (a == 0 || b == 0) return a + b;
    joints_.emplace_back(a, b);
    return static_cast<int>(joints_.size());
  }
  size_t joints() const { return joints_.size(); }
  void shrink(size_t joints) { joints_.resize(joints); }
  std::vector<const Leaf*> leaves(int part) const;

 private:
  std::vector<Leaf> leaves_;
  std::vector<std::pair<int, int>> joints_;
};

struct Label {
  Amounts amounts = {};
  double loss = 0;         // by which the best that it stands for may be cheaper
  int part = 0, with = 0;  // two that are to be joined
};
using Front = std::vector<Label>;

// Leaves those that no other has less or as much of everything than, by rising seconds.
void keep_front(Front& front, size_t bounds);
// Leaves about `count`, each of which may stand for others that cost slightly less and have no less of what is bounded.
void thin(Front& front, size_t bounds, size_t count);

struct FrontFactor {
  std::vector<int> scope;
  std::vector<Front> table;  // empty for what cannot be
};

struct FrontGraph {
  std::vector<int> domains;
  std::vector<FrontFactor> factors;
  Front constant;
};
FrontGraph make_fronts(const DprsProblem& problem, const Model& model, const std::vector<Bound>& bounds, Parts& parts);

}  // namespace softneuro::dprs
