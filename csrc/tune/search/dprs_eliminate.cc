// Exact min-sum variable elimination with backward messages.
#include <algorithm>

#include "tune/search/dprs_factors.h"

namespace softneuro::dprs {
namespace {

int position(const std::vector<int>& scope, int variable) {
  auto it = std::find(scope.begin(), scope.end(), variable);
  return it == scope.end() ? -1 : static_cast<int>(it - scope.begin());
}

// A variable with everything that is minimised over when it goes.
struct Bucket {
  int variable = -1;
  int parent = -1;                 // bucket that its message goes to, -1 for a root
  std::vector<int> separator;      // variables eliminated later, ascending
  std::vector<const Factor*> own;  // original factors
  std::vector<int> children;       // buckets whose messages come here
  Factor message, backward;        // over the separator
};

}  // namespace

Table::Table(const FactorGraph& graph, std::vector<int> scope, double fill) : scope_(std::move(scope)) {
  size_t size = 1;
  for (int v : scope_) {
    dims_.push_back(graph.domains[static_cast<size_t>(v)]);
    size *= static_cast<size_t>(dims_.back());
  }
  data_.assign(size, fill);
}

// Calls visit(begin, other, stride, count) for each run of the last variable: `begin` indexes this table, `other` and
// `stride` the table of `scope`.
template <typename Visit>
void Table::walk(const std::vector<int>& scope, Visit&& visit) const {
  const size_t rank = scope_.size();
  if (rank == 0) return visit(size_t{0}, size_t{0}, size_t{0}, size_t{1});
  std::vector<size_t> strides(rank, 0);
  size_t stride = 1;
  for (size_t i = scope.size(); i-- > 0;) {
    size_t at = static_cast<size_t>(position(scope_, scope[i]));
    strides[at] = stride;
    stride *= static_cast<size_t>(dims_[at]);
  }
  std::vector<int> counter(rank, 0);
  const size_t run = static_cast<size_t>(dims_[rank - 1]);
  size_t other = 0;
  for (size_t begin = 0; begin < data_.size(); begin += run) {
    visit(begin, other, strides[rank - 1], run);
    for (size_t i = rank - 1; i-- > 0;) {
      other += strides[i];
      if (++counter[i] < dims_[i]) break;
      other -= strides[i] * static_cast<size_t>(dims_[i]);
      counter[i] = 0;
    }
  }
}

void Table::add(const Factor& factor, double sign) {
  walk(factor.scope, [&](size_t begin, size_t other, size_t stride, size_t count) {
    for (size_t i = 0; i < count; ++i) {
      double& entry = data_[begin + i];
      if (entry != infinity) entry += sign * factor.table[other + i * stride];
    }
  });
}

Factor Table::project(const FactorGraph& graph, const std::vector<int>& scope) const {
  Factor result{scope, Table(graph, scope, infinity).data_};
  walk(scope, [&](size_t begin, size_t other, size_t stride, size_t count) {
    for (size_t i = 0; i < count; ++i) {
      double& least = result.table[other + i * stride];
      least = std::min(least, data_[begin + i]);
    }
  });
  return result;
}

size_t factor_index(const FactorGraph& graph, const Factor& factor, const Assignment& values) {
  size_t index = 0;
  for (int v : factor.scope) {
    index = index * static_cast<size_t>(graph.domains[static_cast<size_t>(v)]) +
            static_cast<size_t>(values[static_cast<size_t>(v)]);
  }
  return index;
}

Exact eliminate(const FactorGraph& graph, const Order& order, int with_marginals) {
  const int count = static_cast<int>(graph.domains.size());
  std::vector<int> rank(static_cast<size_t>(count));  // variable -> bucket
  std::vector<Bucket> buckets(static_cast<size_t>(count));
  for (int i = 0; i < count; ++i) {
    int v = order.variables[static_cast<size_t>(i)];
    rank[static_cast<size_t>(v)] = i;
    buckets[static_cast<size_t>(i)].variable = v;
  }
  auto bucket_of = [&](const std::vector<int>& scope) {
    int first = -1;
    for (int v : scope) {
      if (int r = rank[static_cast<size_t>(v)]; first < 0 || r < first) first = r;
    }
    return first;
  };

  double constant = graph.constant;
  for (const Factor& factor : graph.factors) {
    if (factor.scope.empty()) {
      constant += factor.table[0];
    } else {
      buckets[static_cast<size_t>(bucket_of(factor.scope))].own.push_back(&factor);
    }
  }
  // Sum of all that is in a bucket; the bucket's variable is the last of the scope.
  auto combine = [&](const Bucket& bucket) {
    std::vector<int> scope = bucket.separator;
    scope.push_back(bucket.variable);
    Table table(graph, std::move(scope));
    for (const Factor* factor : bucket.own) table.add(*factor);
    for (int child : bucket.children) table.add(buckets[static_cast<size_t>(child)].message);
    return table;
  };

  Exact result;
  result.cost = constant;
  for (int i = 0; i < count; ++i) {
    Bucket& bucket = buckets[static_cast<size_t>(i)];
    auto collect = [&](const std::vector<int>& scope) {
      for (int v : scope) {
        if (v != bucket.variable) bucket.separator.push_back(v);
      }
    };
    for (const Factor* factor : bucket.own) collect(factor->scope);
    for (int child : bucket.children) collect(buckets[static_cast<size_t>(child)].separator);
    std::sort(bucket.separator.begin(), bucket.separator.end());
    bucket.separator.erase(std::unique(bucket.separator.begin(), bucket.separator.end()), bucket.separator.end());
    bucket.message = combine(bucket).project(graph, bucket.separator);
    bucket.parent = bucket_of(bucket.separator);
    if (bucket.parent < 0) {
      result.cost += bucket.message.table[0];
    } else {
      buckets[static_cast<size_t>(bucket.parent)].children.push_back(i);
    }
  }
  if (result.cost == infinity) return result;

  result.values.assign(static_cast<size_t>(count), 0);
  result.marginals.resize(static_cast<size_t>(with_marginals));
  for (int i = count; i-- > 0;) {
    Bucket& bucket = buckets[static_cast<size_t>(i)];
    if (bucket.parent < 0) bucket.backward = {{}, {result.cost - bucket.message.table[0]}};
    Table belief = combine(bucket);
    Factor here{belief.scope(), {}};
    const int domain = graph.domains[static_cast<size_t>(bucket.variable)];
    int& value = result.values[static_cast<size_t>(bucket.variable)];
    const size_t base = factor_index(graph, here, result.values);  // with the variable's own value still 0
    for (int x = 1; x < domain; ++x) {
      if (belief.data()[base + static_cast<size_t>(x)] < belief.data()[base + static_cast<size_t>(value)]) value = x;
    }
    if (with_marginals == 0) continue;
    belief.add(bucket.backward);
    if (bucket.variable < with_marginals) {
      result.marginals[static_cast<size_t>(bucket.variable)] = belief.project(graph, {bucket.variable}).table;
    }
    for (int child : bucket.children) {
      Bucket& below = buckets[static_cast<size_t>(child)];
      // Where the message is infinite so is the belief, and nothing is subtracted.
      Table rest = belief;
      rest.add(below.message, -1);
      below.backward = rest.project(graph, below.separator);
    }
  }
  return result;
}

}  // namespace softneuro::dprs
