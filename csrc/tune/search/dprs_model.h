// A checked DPRS problem, reduced, with its factor graph.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "tune/search/dprs.h"
#include "tune/search/dprs_factors.h"

namespace softneuro::dprs {

// One value of a layer's variable: the cheapest of the labels, or groups, that look alike from outside.
struct Option {
  double cost = 0;  // a group's is on its first layer
  DprsChoice choice;
  std::vector<int> in, out;  // -1 on inner slots of a group
};

// Cheapest chains of conversions of one blob.
struct Chains {
  std::vector<double> cost;  // [from][to]
  std::vector<int> next;     // first step from `from` towards `to`
};

// Who touches a blob.
struct BlobUse {
  int producer = -1;
  std::vector<int> consumers;       // layers, ascending, each once
  std::vector<int> available;       // schemas of a graph input
  std::vector<int> output_schemas;  // ascending, each once
};

// A conversion that falls due where the variable a has the value x and b has y.
struct Charge {
  int a = -1, x = 0;  // the producer's, -1 for a graph's input
  int b = -1, y = 0;  // -1 for a graph's output
  int blob = -1, from = -1, to = -1;
};

// Throws Error for anything malformed; returns the use of every blob.
std::vector<BlobUse> check_problem(const DprsProblem& problem);

class Model {
 public:
  explicit Model(const DprsProblem& problem);

  const FactorGraph& graph() const { return graph_; }
  int layers() const { return static_cast<int>(options_.size()); }
  const std::vector<Option>& options(int layer) const { return options_[static_cast<size_t>(layer)]; }

  const std::vector<Charge>& charges() const { return charges_; }
  // Per group the one that stands for all that look alike, -1 for what is not available.
  const std::vector<int>& twins() const { return twins_; }
  const BlobUse& use(int blob) const { return uses_[static_cast<size_t>(blob)]; }
  // Schemas of a blob that somebody wants, ascending.
  std::vector<int> wanted(int blob, const Assignment& values) const;

  // Straight from the definition, without the factor graph; +inf for no plan. Looks at the layers' values only.
  double evaluate(const Assignment& values) const;
  // Improves one layer at a time until nothing helps, sets the auxiliary variables, returns the cost.
  double polish(Assignment& values) const;

  // Per schema the assignment that stays in it wherever a layer can, without groups if possible.
  std::vector<Assignment> starts() const;

  std::vector<DprsChoice> choices(const Assignment& values) const;
  std::vector<DprsAdapt> adapts(const Assignment& values) const;
  // Spreads the options' marginals [layer][option] to all labels and groups, and sets the regrets.
  void expand_marginals(const std::vector<std::vector<double>>& marginals, DprsResult& result) const;

 private:
  // "Some of these layers wants the schema": 1 if one does. Lists that end alike share the variable of their end, which
  // keeps a dense block's width at the number of schemas.
  struct Or {
    int variable = -1;
    std::vector<int> events;
  };

  void make_options();
  void make_chains();
  void make_factors();
  void price_blob(int blob);
  void agree(int group);
  int event_of(int layer, int blob, int schema);
  int or_variable(const std::vector<int>& events);
  std::vector<double>& pair_table(int a, int b);
  void add_pair(int a, int x, int b, int y, double cost);
  // Source schema and cost of the cheapest chain to `to`; `from` is the producer's, ignored for graph inputs.
  std::pair<int, double> source(int blob, int from, int to) const;
  int produced(int blob, const Assignment& values) const;

  const DprsProblem& problem_;
  std::vector<BlobUse> uses_;
  std::vector<std::vector<Option>> options_;
  std::vector<Chains> chains_;
  FactorGraph graph_;
  std::vector<std::vector<double>> unary_;
  std::map<std::pair<int, int>, std::vector<double>> pairs_;
  std::map<std::pair<int, std::vector<char>>, int> event_ids_;
  std::vector<std::pair<int, std::vector<char>>> events_;  // layer, per option whether it wants
  std::map<std::vector<int>, int> or_ids_;
  std::vector<Or> ors_;
  std::vector<int> twins_;
  std::vector<Charge> charges_;
};

}  // namespace softneuro::dprs
