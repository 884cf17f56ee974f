// From a DPRS problem with bounds to fronts of labels.
#include "tune/search/dprs_fronts.h"

#include <algorithm>
#include <map>

namespace softneuro::dprs {
namespace {

bool covers(const Label& a, const Label& b, size_t bounds, double slack = 0) {
  if (a.amounts[0] > b.amounts[0] + slack) return false;
  for (size_t k = 1; k <= bounds; ++k) {
    if (a.amounts[k] > b.amounts[k]) return false;
  }
  return true;
}

void stand_for(Label& a, const Label& b) { a.loss = std::max(a.loss, a.amounts[0] - (b.amounts[0] - b.loss)); }

// Of a front that falls in seconds. What is left out has something left that stands for it, so that nothing stands for
// what stands for more.
Front thinned(const Front& falling, size_t bounds, double slack, size_t most) {
  Front kept;
  for (const Label& label : falling) {
    auto by = kept.rend();
    for (auto at = kept.rbegin(); at != kept.rend() && at->amounts[0] <= label.amounts[0] + slack; ++at) {
      if (covers(*at, label, bounds, slack)) {
        by = at;
        break;
      }
    }
    if (by != kept.rend()) {
      stand_for(*by, label);
    } else {
      kept.push_back(label);
      if (kept.size() > most) break;
    }
  }
  return kept;
}

class Builder {
 public:
  Builder(const DprsProblem& problem, const Model& model, const std::vector<Bound>& bounds, Parts& parts)
      : problem_(problem), model_(model), bounds_(bounds), parts_(parts) {}

  FrontGraph build() {
    graph_.domains = model_.graph().domains;
    graph_.constant = {Label{}};
    for (const Factor& factor : model_.graph().factors) {
      std::vector<Front>& table = at(factor.scope);
      for (size_t i = 0; i < table.size(); ++i) {
        if (factor.table[i] == infinity) table[i].clear();
      }
    }
    for (int layer = 0; layer < model_.layers(); ++layer) add_layer(layer);
    for (const Charge& charge : model_.charges()) add_charge(charge);
    for (auto& [scope, table] : tables_) graph_.factors.push_back({scope, std::move(table)});
    return std::move(graph_);
  }

 private:
  std::vector<Front>& at(const std::vector<int>& scope) {
    std::vector<Front>& table = tables_[scope];
    if (!table.empty()) return table;
    size_t size = 1;
    for (const int v : scope) size *= static_cast<size_t>(graph_.domains[static_cast<size_t>(v)]);
    table.assign(size, Front{Label{}});
    return table;
  }

  // All that look alike from outside; a group's costs are on its first layer.
  void add_layer(int layer) {
    std::vector<Front>& table = at({layer});
    const auto l = static_cast<size_t>(layer);
    for (size_t x = 0; x < table.size(); ++x) {
      const Option& option = model_.options(layer)[x];
      Front front;
      const auto add = [&](const Amounts& amounts, const DprsChoice& choice) {
        front.push_back({amounts, 0, parts_.add({layer, static_cast<int>(x), choice, -1, {}})});
      };
      if (option.choice.group >= 0) {
        add_groups(option.choice.group, layer, add);
      } else {
        const auto& labels = problem_.layers[l].labels;
        for (size_t i = 0; i < labels.size(); ++i) {
          if (labels[i].cost == infinity || labels[i].in != option.in || labels[i].out != option.out) continue;
          Amounts amounts{labels[i].cost};
          for (size_t k = 0; k < bounds_.size(); ++k) amounts[k + 1] = bounds_[k].measure.labels[l][i];
          add(amounts, {static_cast<int>(i), -1});
        }
      }
      multiply(table[x], front);
    }
  }

  template <typename Add>
  void add_groups(int twin, int layer, const Add& add) const {
    int first = layer;
    for (const DprsCover& cover : problem_.groups[static_cast<size_t>(twin)].covers)
      first = std::min(first, cover.layer);
    if (layer != first) return add(Amounts{}, DprsChoice{});
    for (size_t g = 0; g < problem_.groups.size(); ++g) {
      if (model_.twins()[g] != twin) continue;
      Amounts amounts{problem_.groups[g].cost};
      for (size_t k = 0; k < bounds_.size(); ++k) amounts[k + 1] = bounds_[k].measure.groups[g];
      add(amounts, DprsChoice{-1, static_cast<int>(g)});
    }
  }

  void add_charge(const Charge& charge) {
    const Front& chains = chains_of(charge);
    if (charge.a < 0 && charge.b < 0) return multiply(graph_.constant, chains);
    if (charge.a < 0 || charge.b < 0) {
      const bool a = charge.b < 0;
      return multiply(at({a ? charge.a : charge.b})[static_cast<size_t>(a ? charge.x : charge.y)], chains);
    }
    const bool sorted = charge.a < charge.b;
    const int first = sorted ? charge.a : charge.b, second = sorted ? charge.b : charge.a;
    const int x = sorted ? charge.x : charge.y, y = sorted ? charge.y : charge.x;
    multiply(at({first, second})[static_cast<size_t>(x * graph_.domains[static_cast<size_t>(second)] + y)], chains);
  }

  void multiply(Front& front, const Front& other) {
    Front product;
    for (const Label& a : front) {
      for (const Label& b : other) {
        Label& label = product.emplace_back(a);
        for (size_t k = 0; k < label.amounts.size(); ++k) label.amounts[k] += b.amounts[k];
        label.with = b.part;
      }
    }
    keep_front(product, bounds_.size());
    for (Label& label : product) label.part = parts_.join(label.part, label.with), label.with = 0;
    front = std::move(product);
  }

  const Front& chains_of(const Charge& charge) {
    const auto [known, fresh] = chains_.try_emplace({charge.blob, charge.from});
    if (fresh) known->second = find_chains(charge.blob, charge.from);
    return known->second[static_cast<size_t>(charge.to)];
  }

  Amounts conversion(int blob, size_t edge) const {
    const auto& seconds = problem_.adapts[static_cast<size_t>(blob)];
    Amounts amounts{seconds.empty() ? infinity : seconds[edge]};
    for (size_t k = 0; k < bounds_.size(); ++k) {
      const auto& adapts = bounds_[k].measure.adapts;
      if (!adapts.empty() && !adapts[static_cast<size_t>(blob)].empty()) {
        amounts[k + 1] = adapts[static_cast<size_t>(blob)][edge];
      }
    }
    return amounts;
  }

  // Per schema the front of chains to it.
  std::vector<Front> find_chains(int blob, int from) {
    struct Chain {
      Label label;
      std::vector<int> path;
    };
    const auto n = static_cast<size_t>(problem_.schemas);
    std::vector<std::vector<Chain>> chains(n);
    std::vector<std::pair<size_t, Chain>> open;
    const std::vector<int> sources = from < 0 ? model_.use(blob).available : std::vector<int>{from};
    for (const int schema : sources) open.push_back({static_cast<size_t>(schema), {{}, {schema}}});
    while (!open.empty()) {
      std::vector<std::pair<size_t, Chain>> next;
      for (auto& [schema, chain] : open) {
        std::vector<Chain>& own = chains[schema];
        const Label& label = chain.label;
        const bool worse = std::any_of(own.begin(), own.end(),
                                       [&](const Chain& other) { return covers(other.label, label, bounds_.size()); });
        if (worse) continue;
        std::erase_if(own, [&](const Chain& other) { return covers(label, other.label, bounds_.size()); });
        own.push_back(chain);
        for (size_t to = 0; to < n; ++to) {
          const Amounts step = to == schema ? Amounts{infinity} : conversion(blob, schema * n + to);
          if (step[0] == infinity) continue;
          Chain longer = chain;
          for (size_t k = 0; k < step.size(); ++k) longer.label.amounts[k] += step[k];
          longer.path.push_back(static_cast<int>(to));
          next.emplace_back(to, std::move(longer));
        }
      }
      open = std::move(next);
    }
    std::vector<Front> fronts(n);
    for (size_t to = 0; to < n; ++to) {
      for (Chain& chain : chains[to]) {
        if (chain.path.size() > 1) chain.label.part = parts_.add({-1, 0, {}, blob, std::move(chain.path)});
        fronts[to].push_back(chain.label);
      }
    }
    return fronts;
  }

  const DprsProblem& problem_;
  const Model& model_;
  const std::vector<Bound>& bounds_;
  Parts& parts_;
  FrontGraph graph_;
  std::map<std::vector<int>, std::vector<Front>> tables_;
  std::map<std::pair<int, int>, std::vector<Front>> chains_;
};

}  // namespace

std::vector<const Leaf*> Parts::leaves(int part) const {
  std::vector<const Leaf*> found;
  std::vector<int> open{part};
  while (!open.empty()) {
    const int next = open.back();
    open.pop_back();
    if (next < 0) found.push_back(&leaves_[static_cast<size_t>(-next - 1)]);
    if (next <= 0) continue;
    const auto& [a, b] = joints_[static_cast<size_t>(next - 1)];
    open.push_back(b);
    open.push_back(a);
  }
  return found;
}

FrontGraph make_fronts(const DprsProblem& problem, const Model& model, const std::vector<Bound>& bounds, Parts& parts) {
  return Builder(problem, model, bounds, parts).build();
}

void keep_front(Front& front, size_t bounds) {
  if (front.size() < 2) return;
  std::stable_sort(front.begin(), front.end(), [](const Label& a, const Label& b) { return a.amounts < b.amounts; });
  size_t kept = 0;
  for (const Label& label : front) {
    // With one bound, the last that was kept has the least of it.
    size_t by = bounds < 2 && kept > 0 ? kept - 1 : 0;
    while (by < kept && !covers(front[by], label, bounds)) ++by;
    if (by < kept) {
      stand_for(front[by], label);
    } else {
      front[kept++] = label;
    }
  }
  front.resize(kept);
}

void thin(Front& front, size_t bounds, size_t count) {
  if (front.size() <= count) return;
  const double range = front.back().amounts[0] - front.front().amounts[0];
  const Front falling(front.rbegin(), front.rend());
  double low = 0, high = range / static_cast<double>(count);
  Front best = thinned(falling, bounds, high, front.size());
  for (int step = 0; step < 8; ++step) {
    const double middle = 0.5 * (low + high);
    Front fewer = thinned(falling, bounds, middle, count);
    if (fewer.size() > count) {
      low = middle;
    } else {
      high = middle;
      best = std::move(fewer);
    }
  }
  front.assign(best.rbegin(), best.rend());
}

}  // namespace softneuro::dprs
