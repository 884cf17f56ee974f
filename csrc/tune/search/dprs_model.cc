// From a DPRS problem to a factor graph of pairwise factors.
#include "tune/search/dprs_model.h"

#include <algorithm>
#include <string>

#include "base/error.h"

namespace softneuro::dprs {
namespace {

bool wants(const Option& option, const DprsLayer& layer, int blob, int schema) {
  for (size_t slot = 0; slot < layer.inputs.size(); ++slot) {
    if (layer.inputs[slot] == blob && option.in[slot] == schema) return true;
  }
  return false;
}

int delivers(const Option& option, const DprsLayer& layer, int blob) {
  auto it = std::find(layer.outputs.begin(), layer.outputs.end(), blob);
  return option.out[static_cast<size_t>(it - layer.outputs.begin())];
}

}  // namespace

Model::Model(const DprsProblem& problem) : problem_(problem), uses_(check_problem(problem)) {
  make_options();
  make_chains();
  make_factors();
}

void Model::make_options() {
  options_.resize(problem_.layers.size());
  for (size_t i = 0; i < options_.size(); ++i) {
    std::map<std::pair<std::vector<int>, std::vector<int>>, size_t> seen;
    for (size_t k = 0; k < problem_.layers[i].labels.size(); ++k) {
      const DprsLabel& label = problem_.layers[i].labels[k];
      if (label.cost == infinity) continue;
      Option option{label.cost, {static_cast<int>(k), -1}, label.in, label.out};
      auto [it, fresh] = seen.try_emplace({label.in, label.out}, options_[i].size());
      if (fresh) {
        options_[i].push_back(std::move(option));
      } else if (option.cost < options_[i][it->second].cost) {
        options_[i][it->second] = std::move(option);
      }
    }
  }
  // Groups that cover the same with the same schemas compete among themselves: only the cheapest takes part.
  using Signature = std::vector<std::pair<int, std::pair<std::vector<int>, std::vector<int>>>>;
  std::map<Signature, int> best;
  std::vector<Signature> signatures;
  for (size_t g = 0; g < problem_.groups.size(); ++g) {
    const DprsGroup& group = problem_.groups[g];
    std::vector<char> inside(options_.size(), 0);
    for (const DprsCover& cover : group.covers) inside[static_cast<size_t>(cover.layer)] = 1;
    Signature signature;
    for (const DprsCover& cover : group.covers) {
      const DprsLayer& layer = problem_.layers[static_cast<size_t>(cover.layer)];
      std::vector<int> in = cover.in, out = cover.out;
      for (size_t slot = 0; slot < in.size(); ++slot) {
        const int producer = uses_[static_cast<size_t>(layer.inputs[slot])].producer;
        if (producer >= 0 && inside[static_cast<size_t>(producer)]) in[slot] = -1;
      }
      for (size_t slot = 0; slot < out.size(); ++slot) {
        const auto& consumers = uses_[static_cast<size_t>(layer.outputs[slot])].consumers;
        if (!consumers.empty() && inside[static_cast<size_t>(consumers[0])]) out[slot] = -1;
      }
      signature.push_back({cover.layer, {std::move(in), std::move(out)}});
    }
    std::sort(signature.begin(), signature.end());
    signatures.push_back(signature);
    if (group.cost == infinity) continue;
    auto [it, fresh] = best.try_emplace(std::move(signature), static_cast<int>(g));
    if (!fresh && group.cost < problem_.groups[static_cast<size_t>(it->second)].cost) it->second = static_cast<int>(g);
  }
  for (size_t g = 0; g < signatures.size(); ++g) {
    auto it = best.find(signatures[g]);
    const bool available = it != best.end();
    twins_.push_back(available && problem_.groups[g].cost != infinity ? it->second : -1);
    if (!available || it->second != static_cast<int>(g)) continue;
    double cost = problem_.groups[g].cost;
    for (const auto& [layer, slots] : signatures[g]) {
      options_[static_cast<size_t>(layer)].push_back({cost, {-1, static_cast<int>(g)}, slots.first, slots.second});
      cost = 0;
    }
  }
  for (size_t i = 0; i < options_.size(); ++i) {
    if (options_[i].empty()) {
      throw Error("no candidate computes it", "layer " + std::to_string(i), "allow more schemas or add a routine");
    }
  }
}

void Model::make_chains() {
  const size_t n = static_cast<size_t>(problem_.schemas);
  for (const std::vector<double>& adapts : problem_.adapts) {
    Chains chains{adapts.empty() ? std::vector<double>(n * n, infinity) : adapts, std::vector<int>(n * n)};
    for (size_t i = 0; i < n; ++i) {
      for (size_t j = 0; j < n; ++j) chains.next[i * n + j] = static_cast<int>(j);
      chains.cost[i * n + i] = 0;
    }
    for (size_t k = 0; k < n; ++k) {
      for (size_t i = 0; i < n; ++i) {
        for (size_t j = 0; j < n; ++j) {
          const double through = chains.cost[i * n + k] + chains.cost[k * n + j];
          if (through >= chains.cost[i * n + j]) continue;
          chains.cost[i * n + j] = through;
          chains.next[i * n + j] = chains.next[i * n + k];
        }
      }
    }
    chains_.push_back(std::move(chains));
  }
}

void Model::make_factors() {
  for (const auto& options : options_) {
    graph_.domains.push_back(static_cast<int>(options.size()));
    unary_.emplace_back();
    for (const Option& option : options) unary_.back().push_back(option.cost);
  }
  for (int blob = 0; blob < problem_.blobs; ++blob) price_blob(blob);
  std::vector<char> used(problem_.groups.size(), 0);
  for (const auto& options : options_) {
    for (const Option& option : options) {
      if (option.choice.group >= 0) used[static_cast<size_t>(option.choice.group)] = 1;
    }
  }
  for (size_t g = 0; g < used.size(); ++g) {
    if (used[g]) agree(static_cast<int>(g));
  }
  for (size_t v = 0; v < unary_.size(); ++v) graph_.factors.push_back({{static_cast<int>(v)}, std::move(unary_[v])});
  for (auto& [scope, table] : pairs_) graph_.factors.push_back({{scope.first, scope.second}, std::move(table)});
  unary_.clear();
  pairs_.clear();
}

// The price of a blob in a schema falls due when a graph output wants it, or its only reader does, or the variable that
// says "one of its readers does".
void Model::price_blob(int blob) {
  const BlobUse& use = uses_[static_cast<size_t>(blob)];
  // Adds the price to the producer's options; `charge` says for which value of the other variable.
  auto pay = [&](int schema, int variable, const std::vector<char>* mask) {
    const size_t count = use.producer < 0 ? 1 : options_[static_cast<size_t>(use.producer)].size();
    for (size_t x = 0; x < count; ++x) {
      int from = -1;
      if (use.producer >= 0) {
        from = delivers(options_[static_cast<size_t>(use.producer)][x],
                        problem_.layers[static_cast<size_t>(use.producer)], blob);
      }
      const double price = source(blob, from, schema).second;
      for (size_t y = 0; from != schema && y < (mask == nullptr ? 1 : mask->size()); ++y) {
        if (mask == nullptr || (*mask)[y]) {
          charges_.push_back({use.producer, static_cast<int>(x), variable, static_cast<int>(y), blob, from, schema});
        }
      }
      if (price == 0) continue;
      if (mask == nullptr) {
        (use.producer < 0 ? graph_.constant : unary_[static_cast<size_t>(use.producer)][x]) += price;
        continue;
      }
      for (size_t y = 0; y < mask->size(); ++y) {
        if (!(*mask)[y]) continue;
        if (use.producer < 0) {
          unary_[static_cast<size_t>(variable)][y] += price;
        } else {
          add_pair(use.producer, static_cast<int>(x), variable, static_cast<int>(y), price);
        }
      }
    }
  };
  static const std::vector<char> when_set{0, 1};
  for (int schema = 0; schema < problem_.schemas; ++schema) {
    if (std::binary_search(use.output_schemas.begin(), use.output_schemas.end(), schema)) {
      pay(schema, -1, nullptr);
      continue;
    }
    std::vector<int> events;
    for (int layer : use.consumers) {
      if (int event = event_of(layer, blob, schema); event >= 0) events.push_back(event);
    }
    if (events.size() == 1) {
      const auto& [layer, mask] = events_[static_cast<size_t>(events[0])];
      pay(schema, layer, &mask);
    } else if (events.size() > 1) {
      pay(schema, or_variable(events), &when_set);
    }
  }
}

// Id of "the layer wants the blob in this schema", -1 if it never does. Slots with the same options share it.
int Model::event_of(int layer, int blob, int schema) {
  std::vector<char> mask;
  for (const Option& option : options_[static_cast<size_t>(layer)]) {
    mask.push_back(wants(option, problem_.layers[static_cast<size_t>(layer)], blob, schema));
  }
  if (std::find(mask.begin(), mask.end(), 1) == mask.end()) return -1;
  auto [it, fresh] = event_ids_.try_emplace({layer, std::move(mask)}, static_cast<int>(events_.size()));
  if (fresh) events_.push_back(it->first);
  return it->second;
}

// Lower bounds suffice (variable >= event, variable >= the rest's variable): prices are never negative, so no optimum
// sets one that is not needed.
int Model::or_variable(const std::vector<int>& events) {
  auto found = or_ids_.find(events);
  if (found != or_ids_.end()) return found->second;
  const std::vector<int> rest(events.begin() + 1, events.end());
  const int below = rest.size() > 1 ? or_variable(rest) : -1;
  const int variable = static_cast<int>(graph_.domains.size());
  graph_.domains.push_back(2);
  unary_.emplace_back(2, 0.0);
  or_ids_.emplace(events, variable);
  ors_.push_back({variable, events});
  auto at_least = [&](int event) {
    const auto& [layer, mask] = events_[static_cast<size_t>(event)];
    for (size_t x = 0; x < mask.size(); ++x) {
      if (mask[x]) add_pair(layer, static_cast<int>(x), variable, 0, infinity);
    }
  };
  at_least(events[0]);
  if (below >= 0) {
    add_pair(below, 1, variable, 0, infinity);
  } else {
    at_least(rest[0]);
  }
  return variable;
}

// All or nothing, along a spanning tree of the group's inner edges so that no new neighbours arise.
void Model::agree(int group) {
  std::vector<int> members;
  for (const DprsCover& cover : problem_.groups[static_cast<size_t>(group)].covers) members.push_back(cover.layer);
  std::sort(members.begin(), members.end());
  for (size_t i = 1; i < members.size(); ++i) {
    int partner = members[0];
    for (int blob : problem_.layers[static_cast<size_t>(members[i])].inputs) {
      const int producer = uses_[static_cast<size_t>(blob)].producer;
      if (std::binary_search(members.begin(), members.begin() + static_cast<std::ptrdiff_t>(i), producer)) {
        partner = producer;
        break;
      }
    }
    const auto &here = options_[static_cast<size_t>(members[i])], &there = options_[static_cast<size_t>(partner)];
    for (size_t x = 0; x < here.size(); ++x) {
      for (size_t y = 0; y < there.size(); ++y) {
        if ((here[x].choice.group == group) != (there[y].choice.group == group)) {
          add_pair(members[i], static_cast<int>(x), partner, static_cast<int>(y), infinity);
        }
      }
    }
  }
}

void Model::add_pair(int a, int x, int b, int y, double cost) {
  if (a > b) {
    std::swap(a, b);
    std::swap(x, y);
  }
  auto& table = pairs_[{a, b}];
  const size_t columns = static_cast<size_t>(graph_.domains[static_cast<size_t>(b)]);
  if (table.empty()) table.resize(static_cast<size_t>(graph_.domains[static_cast<size_t>(a)]) * columns);
  table[static_cast<size_t>(x) * columns + static_cast<size_t>(y)] += cost;
}

}  // namespace softneuro::dprs
