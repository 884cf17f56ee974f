// The objective straight from its definition, and what a solution means.
#include <algorithm>
#include <tuple>

#include "tune/search/dprs_model.h"

namespace softneuro::dprs {
std::pair<int, double> Model::source(int blob, int from, int to) const {
  const BlobUse& use = uses_[static_cast<size_t>(blob)];
  const Chains& chains = chains_[static_cast<size_t>(blob)];
  const size_t n = static_cast<size_t>(problem_.schemas);
  auto price = [&](int schema) { return chains.cost[static_cast<size_t>(schema) * n + static_cast<size_t>(to)]; };
  if (use.producer >= 0) return {from, from < 0 ? infinity : price(from)};
  int best = use.available[0];
  for (int schema : use.available) {
    if (price(schema) < price(best)) best = schema;
  }
  return {best, price(best)};
}

int Model::produced(int blob, const Assignment& values) const {
  const int producer = uses_[static_cast<size_t>(blob)].producer;
  if (producer < 0) return -1;
  const auto& outputs = problem_.layers[static_cast<size_t>(producer)].outputs;
  const size_t slot = static_cast<size_t>(std::find(outputs.begin(), outputs.end(), blob) - outputs.begin());
  return options(producer)[static_cast<size_t>(values[static_cast<size_t>(producer)])].out[slot];
}

std::vector<int> Model::wanted(int blob, const Assignment& values) const {
  const BlobUse& use = uses_[static_cast<size_t>(blob)];
  std::vector<int> schemas = use.output_schemas;
  for (int layer : use.consumers) {
    const Option& option = options(layer)[static_cast<size_t>(values[static_cast<size_t>(layer)])];
    const auto& inputs = problem_.layers[static_cast<size_t>(layer)].inputs;
    for (size_t slot = 0; slot < inputs.size(); ++slot) {
      if (inputs[slot] == blob && option.in[slot] >= 0) schemas.push_back(option.in[slot]);
    }
  }
  std::sort(schemas.begin(), schemas.end());
  schemas.erase(std::unique(schemas.begin(), schemas.end()), schemas.end());
  return schemas;
}

double Model::evaluate(const Assignment& values) const {
  double total = 0;
  for (int i = 0; i < layers(); ++i) {
    const Option& option = options(i)[static_cast<size_t>(values[static_cast<size_t>(i)])];
    total += option.cost;
    if (option.choice.group < 0) continue;
    for (const DprsCover& cover : problem_.groups[static_cast<size_t>(option.choice.group)].covers) {
      const int other = values[static_cast<size_t>(cover.layer)];
      if (options(cover.layer)[static_cast<size_t>(other)].choice != option.choice) return infinity;
    }
  }
  for (int blob = 0; blob < problem_.blobs; ++blob) {
    const int from = produced(blob, values);
    for (int schema : wanted(blob, values)) total += source(blob, from, schema).second;
  }
  return total;
}

double Model::polish(Assignment& values) const {
  double cost = evaluate(values);
  for (bool improved = true; improved;) {
    improved = false;
    for (int i = 0; i < layers(); ++i) {
      int& value = values[static_cast<size_t>(i)];
      for (int x = 0, best = value; x < static_cast<int>(options(i).size()); ++x) {
        value = x;
        const double candidate = evaluate(values);
        if (candidate < cost) {
          cost = candidate;
          best = x;
          improved = true;
        }
        value = best;
      }
    }
  }
  for (const Or& or_node : ors_) {
    bool set = false;
    for (int event : or_node.events) {
      const auto& [layer, mask] = events_[static_cast<size_t>(event)];
      set = set || mask[static_cast<size_t>(values[static_cast<size_t>(layer)])];
    }
    values[static_cast<size_t>(or_node.variable)] = set;
  }
  return cost;
}

std::vector<Assignment> Model::starts() const {
  std::vector<Assignment> result;
  for (int schema = 0; schema < problem_.schemas; ++schema) {
    Assignment& values = result.emplace_back(graph_.domains.size(), 0);
    for (int i = 0; i < layers(); ++i) {
      auto rank = [&](const Option& option) {
        auto elsewhere = [&](int other) { return other != schema; };
        const auto moves = std::count_if(option.in.begin(), option.in.end(), elsewhere) +
                           std::count_if(option.out.begin(), option.out.end(), elsewhere);
        return std::tuple(option.choice.group >= 0, moves, option.cost);
      };
      for (size_t x = 1; x < options(i).size(); ++x) {
        int& value = values[static_cast<size_t>(i)];
        if (rank(options(i)[x]) < rank(options(i)[static_cast<size_t>(value)])) value = static_cast<int>(x);
      }
    }
  }
  return result;
}

std::vector<DprsChoice> Model::choices(const Assignment& values) const {
  std::vector<DprsChoice> chosen;
  for (int i = 0; i < layers(); ++i) {
    chosen.push_back(options(i)[static_cast<size_t>(values[static_cast<size_t>(i)])].choice);
  }
  return chosen;
}

std::vector<DprsAdapt> Model::adapts(const Assignment& values) const {
  std::vector<DprsAdapt> steps;
  const size_t n = static_cast<size_t>(problem_.schemas);
  for (int blob = 0; blob < problem_.blobs; ++blob) {
    const BlobUse& use = uses_[static_cast<size_t>(blob)];
    const Chains& chains = chains_[static_cast<size_t>(blob)];
    const int from = produced(blob, values);
    std::vector<char> present(n, 0);
    for (int schema : use.available) present[static_cast<size_t>(schema)] = 1;
    if (from >= 0) present[static_cast<size_t>(from)] = 1;
    for (int schema : wanted(blob, values)) {
      for (int at = source(blob, from, schema).first; at != schema;) {
        const int next = chains.next[static_cast<size_t>(at) * n + static_cast<size_t>(schema)];
        if (!present[static_cast<size_t>(next)]) {
          present[static_cast<size_t>(next)] = 1;
          const size_t edge = static_cast<size_t>(at) * n + static_cast<size_t>(next);
          steps.push_back({blob, at, next, problem_.adapts[static_cast<size_t>(blob)][edge]});
        }
        at = next;
      }
    }
  }
  return steps;
}

}  // namespace softneuro::dprs
