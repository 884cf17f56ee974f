// Elimination with scalar weights: bounds for the search over fronts.
#include "tune/search/dprs_tree.h"

#include <algorithm>

namespace softneuro::dprs {
namespace {

std::vector<size_t> strides_over(const Bucket& bucket, const std::vector<int>& scope, const std::vector<int>& domains) {
  std::vector<size_t> strides(bucket.variables.size(), 0);
  size_t stride = 1;
  for (size_t i = scope.size(); i-- > 0;) {
    const auto at = std::find(bucket.variables.begin(), bucket.variables.end(), scope[i]) - bucket.variables.begin();
    strides[static_cast<size_t>(at)] = stride;
    stride *= static_cast<size_t>(domains[static_cast<size_t>(scope[i])]);
  }
  return strides;
}

double least(const Front& front, const Amounts& weights) {
  double best = infinity;
  for (const Label& label : front) best = std::min(best, dot(label.amounts, weights));
  return best;
}

void add(Label& to, const Front& front, const Amounts& weights, Parts& parts) {
  const Label& best = *std::min_element(front.begin(), front.end(), [&](const Label& a, const Label& b) {
    return dot(a.amounts, weights) < dot(b.amounts, weights);
  });
  for (size_t k = 0; k < to.amounts.size(); ++k) to.amounts[k] += best.amounts[k];
  to.part = parts.join(to.part, best.part);
}

}  // namespace

Tree::Tree(const FrontGraph& graph, const Order& order) : buckets_(graph.domains.size()) {
  std::vector<int> rank(buckets_.size());
  for (size_t i = 0; i < buckets_.size(); ++i) {
    buckets_[i].variable = order.variables[i];
    rank[static_cast<size_t>(order.variables[i])] = static_cast<int>(i);
  }
  const auto earlier = [&](int a, int b) { return rank[static_cast<size_t>(a)] < rank[static_cast<size_t>(b)]; };
  const auto bucket_of = [&](const std::vector<int>& scope) {
    return rank[static_cast<size_t>(*std::min_element(scope.begin(), scope.end(), earlier))];
  };
  for (size_t f = 0; f < graph.factors.size(); ++f) {
    const int at = bucket_of(graph.factors[f].scope);
    buckets_[static_cast<size_t>(at)].summands.push_back({false, static_cast<int>(f), {}});
  }
  std::vector<std::vector<int>> sent(buckets_.size());
  for (size_t i = 0; i < buckets_.size(); ++i) {
    Bucket& bucket = buckets_[i];
    const auto scope_of = [&](const Summand& summand) -> const std::vector<int>& {
      const auto index = static_cast<size_t>(summand.index);
      return summand.sent ? sent[index] : graph.factors[index].scope;
    };
    for (const Summand& summand : bucket.summands) {
      const std::vector<int>& scope = scope_of(summand);
      bucket.variables.insert(bucket.variables.end(), scope.begin(), scope.end());
    }
    std::sort(bucket.variables.begin(), bucket.variables.end());
    bucket.variables.erase(std::unique(bucket.variables.begin(), bucket.variables.end()), bucket.variables.end());
    std::erase(bucket.variables, bucket.variable);
    sent[i] = bucket.variables;
    bucket.variables.push_back(bucket.variable);
    bucket.entries = 1;
    for (const int v : bucket.variables) {
      bucket.sizes.push_back(graph.domains[static_cast<size_t>(v)]);
      bucket.entries *= static_cast<size_t>(bucket.sizes.back());
    }
    bucket.sends = bucket.entries / static_cast<size_t>(bucket.sizes.back());
    for (Summand& summand : bucket.summands) summand.strides = strides_over(bucket, scope_of(summand), graph.domains);
    if (sent[i].empty()) continue;
    bucket.parent = bucket_of(sent[i]);
    buckets_[static_cast<size_t>(bucket.parent)].summands.push_back({true, static_cast<int>(i), {}});
  }
}

Priced::Priced(const FrontGraph& graph, const Tree& tree, const Amounts& at) : weights(at) {
  for (const FrontFactor& factor : graph.factors) {
    std::vector<double>& table = factors.emplace_back();
    for (const Front& front : factor.table) table.push_back(least(front, weights));
  }
  total = constant = least(graph.constant, weights);
  for (const Bucket& bucket : tree.buckets()) {
    std::vector<double>& table = sent.emplace_back(bucket.sends, infinity);
    Tree::walk(bucket, [&](size_t entry, int, const std::vector<size_t>& offsets) {
      double sum = 0;
      for (size_t s = 0; s < offsets.size(); ++s) sum += this->table(bucket.summands[s])[offsets[s]];
      table[entry] = std::min(table[entry], sum);
    });
    if (bucket.parent < 0) total += table[0];
  }
}

void Priced::look_back(const Tree& tree) {
  const auto& buckets = tree.buckets();
  for (const Bucket& bucket : buckets) beyond.emplace_back(bucket.sends, infinity);
  for (size_t i = buckets.size(); i-- > 0;) {
    const Bucket& bucket = buckets[i];
    if (bucket.parent < 0) beyond[i][0] = total - sent[i][0];
    Tree::walk(bucket, [&](size_t entry, int, const std::vector<size_t>& offsets) {
      double sum = beyond[i][entry];
      for (size_t s = 0; s < offsets.size(); ++s) sum += table(bucket.summands[s])[offsets[s]];
      if (sum == infinity) return;
      for (size_t s = 0; s < offsets.size(); ++s) {
        if (!bucket.summands[s].sent) continue;
        const auto below = static_cast<size_t>(bucket.summands[s].index);
        beyond[below][offsets[s]] = std::min(beyond[below][offsets[s]], sum - sent[below][offsets[s]]);
      }
    });
  }
}

Label best_label(const FrontGraph& graph, const Tree& tree, const Priced& priced, Parts& parts) {
  const auto& buckets = tree.buckets();
  std::vector<int> values(graph.domains.size(), 0);
  Label label;
  add(label, graph.constant, priced.weights, parts);
  for (size_t i = buckets.size(); i-- > 0;) {
    const Bucket& bucket = buckets[i];
    std::vector<size_t> offsets(bucket.summands.size(), 0);
    for (size_t s = 0; s < offsets.size(); ++s) {
      for (size_t v = 0; v + 1 < bucket.variables.size(); ++v) {
        offsets[s] +=
            bucket.summands[s].strides[v] * static_cast<size_t>(values[static_cast<size_t>(bucket.variables[v])]);
      }
    }
    const auto sum = [&](size_t value) {
      double all = 0;
      for (size_t s = 0; s < offsets.size(); ++s) {
        all += priced.table(bucket.summands[s])[offsets[s] + value * bucket.summands[s].strides.back()];
      }
      return all;
    };
    int& value = values[static_cast<size_t>(bucket.variable)];
    double best = sum(0);
    for (int x = 1; x < bucket.sizes.back(); ++x) {
      if (const double own = sum(static_cast<size_t>(x)); own < best) best = own, value = x;
    }
    for (size_t s = 0; s < offsets.size(); ++s) {
      const Summand& summand = bucket.summands[s];
      if (summand.sent) continue;
      const size_t at = offsets[s] + static_cast<size_t>(value) * summand.strides.back();
      add(label, graph.factors[static_cast<size_t>(summand.index)].table[at], priced.weights, parts);
    }
  }
  return label;
}

}  // namespace softneuro::dprs
