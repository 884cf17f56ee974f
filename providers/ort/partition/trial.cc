#include "providers/ort/partition/trial.h"

#include <map>

#include "providers/ort/lower/lowering.h"
#include "providers/ort/lower/quantized_values.h"

namespace softneuro::ort {

Refusal try_layers(const HostGraph& graph, const std::vector<const HostNode*>& nodes) {
  HostGraph alone;
  std::vector<GivenInput> given;
  std::map<int, int> ids;
  for (const HostNode* node : nodes) {
    HostNode copy = *node;
    for (auto* list : {&copy.inputs, &copy.outputs}) {
      for (int& id : *list) {
        if (id < 0) continue;
        const int old = id;
        const HostValue& value = graph.value(id);
        const auto [found, is_new] = ids.try_emplace(id, static_cast<int>(alone.values.size()));
        id = found->second;
        if (!is_new) continue;
        alone.values.push_back(value);
        if (list == &copy.outputs) {
          // Sums of integers are reals inside a region, which is no output that the host takes.
          const bool taken = !is_integer_sum(*node) && (copy.outputs.size() == 1 || is_read(graph, old));
          if (node == nodes.back() && taken) alone.outputs.push_back(id);
        } else if (!value.constant) {
          if (!is_fixed(value)) return {};
          alone.inputs.push_back(id);
          given.push_back({Shape(value.dims), {}});
        }
      }
    }
    alone.nodes.push_back(std::move(copy));
  }
  try {
    WeightConstants constants;
    Lowering(alone, 0, constants).run(given);
    return {};
  } catch (const Error& error) {
    const std::string text = error.what();
    return text.starts_with(error.where() + ": ") ? text.substr(error.where().size() + 2) : text;
  }
}

}  // namespace softneuro::ort
