// The buckets of an elimination over fronts, and what prices make of them.
#pragma once

#include <cstddef>
#include <vector>

#include "tune/search/dprs_fronts.h"

namespace softneuro::dprs {

// A table that a bucket sums: a factor's, or what a bucket below it sends.
struct Summand {
  bool sent = false;
  int index = 0;
  std::vector<size_t> strides;  // over the bucket's variables
};

struct Bucket {
  int variable = -1;
  int parent = -1;             // bucket that it sends to, -1 for a root
  std::vector<int> variables;  // what it sends is over all but its own, the last
  std::vector<int> sizes;
  std::vector<Summand> summands;
  size_t entries = 0, sends = 0;  // of its table, and of what it sends
};

class Tree {
 public:
  Tree(const FrontGraph& graph, const Order& order);
  const std::vector<Bucket>& buckets() const { return buckets_; }

  // Calls visit(entry sent, value, offsets by summand) for every entry; all values of an entry follow one another.
  template <typename Visit>
  static void walk(const Bucket& bucket, Visit&& visit) {
    const size_t rank = bucket.sizes.size();
    std::vector<int> counter(rank, 0);
    std::vector<size_t> offsets(bucket.summands.size(), 0);
    const auto values = static_cast<size_t>(bucket.sizes[rank - 1]);
    for (size_t entry = 0; entry < bucket.entries; ++entry) {
      visit(entry / values, static_cast<int>(entry % values), offsets);
      for (size_t i = rank; i-- > 0;) {
        const bool over = ++counter[i] == bucket.sizes[i];
        for (size_t s = 0; s < offsets.size(); ++s) {
          const size_t stride = bucket.summands[s].strides[i];
          offsets[s] += stride;
          if (over) offsets[s] -= stride * static_cast<size_t>(bucket.sizes[i]);
        }
        if (!over) break;
        counter[i] = 0;
      }
    }
  }

 private:
  std::vector<Bucket> buckets_;
};

// The problem at a weight for seconds and one for each bound: the least of every entry, and of what is beyond it.
struct Priced {
  Priced(const FrontGraph& graph, const Tree& tree, const Amounts& weights);
  // Fills `beyond`.
  void look_back(const Tree& tree);
  const std::vector<double>& table(const Summand& summand) const {
    return (summand.sent ? sent : factors)[static_cast<size_t>(summand.index)];
  }

  Amounts weights;
  std::vector<std::vector<double>> factors, sent, beyond;
  double constant = 0, total = 0;
};

// The best plan at these weights, with its parts; total must be finite.
Label best_label(const FrontGraph& graph, const Tree& tree, const Priced& priced, Parts& parts);

}  // namespace softneuro::dprs
