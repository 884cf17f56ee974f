// The search for plans within bounds: prices first, then fronts.
#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "tune/search/dprs_tree.h"

namespace softneuro::dprs {

// By which sums in another order may differ.
inline constexpr double rounding = 1e-11;

// No plan that is looked for has more than `most` at these weights.
struct Cut {
  const Priced* priced;
  double most;
};

class Within {
 public:
  Within(const DprsProblem& problem, const std::vector<Bound>& bounds, const LabelLimits& limits);
  WithinBounds run();

 private:
  using Clock = std::chrono::steady_clock;

  bool fits(const Label& label) const;
  // Whether it becomes the best.
  bool note(const Label& label);
  bool proven() const;
  bool late() const { return work_ > limits_.most_sums || Clock::now() > end_; }
  double allowed(const Amounts& weights) const;

  // What the weights prove is the lower bound, and their best plan may be within all bounds.
  Label at_weights(const Amounts& weights);
  // The price of one bound, others' as they are, at which a plan above it costs what one within it does.
  void find_price(Amounts& weights, size_t k);
  void find_prices();
  // One by one prices come to rest where only a change of several helps.
  void follow_slopes();

  void search();
  // False where more labels would tell more.
  bool search_below(double below, size_t front);
  static double slack(const Cut& cut, double least);
  void eliminate(size_t bucket);
  // Every sum that a plan within the cuts may have; `least` is that of the front, and then that of the sums.
  template <typename Least>
  void multiply(Front& front, const Front& other, std::vector<double>& least, const std::vector<double>& slacks,
                const Least& least_of);
  // What a bucket sends has no more labels than are worth having.
  void settle(size_t bucket, size_t entry);

  void finish();
  // Where nobody wants a schema, a chain to it is there only because it costs nothing.
  void add_chains(int blob, const std::vector<int>& wanted, DprsResult& plan) const;

  const DprsProblem& problem_;
  const std::vector<Bound>& bounds_;
  const LabelLimits& limits_;
  Parts parts_;
  Model model_;
  FrontGraph graph_;
  Clock::time_point end_;
  Order order_;
  std::unique_ptr<Tree> tree_;
  std::vector<std::unique_ptr<Priced>> least_;  // of what is bounded
  std::unique_ptr<Priced> best_;                // of the prices that prove most
  double best_bound_ = 0;
  double cost_ = infinity;  // of the best plan, with its leaves
  std::vector<Leaf> leaves_;
  size_t work_ = 0;  // sums of labels
  WithinBounds found_;
  // Of the search that is going on.
  std::vector<Cut> cuts_;
  std::vector<std::vector<Front>> sent_;
  double below_ = 0, dropped_ = 0;
  size_t front_ = 0;
  bool lossy_ = false, aborted_ = false;
};

}  // namespace softneuro::dprs
