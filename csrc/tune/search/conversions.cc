#include "tune/search/conversions.h"

#include <algorithm>

#include "layers/constant/constant.h"

namespace softneuro {
namespace {

struct Schemas {
  std::vector<Schema> from, to;
};

void add(std::vector<Schema>& list, const Schema& schema) {
  if (std::find(list.begin(), list.end(), schema) == list.end()) list.push_back(schema);
}

std::vector<Schemas> schemas_of(const Graph& graph, const std::vector<Offer>& offers) {
  std::vector<Schemas> blobs(graph.blobs().size());
  const auto at = [&](int blob) -> Schemas& { return blobs[static_cast<size_t>(blob)]; };
  for (size_t k = 0; k < graph.inputs().size(); ++k) add(at(graph.inputs()[k]).from, graph.input_schemas()[k]);
  for (size_t k = 0; k < graph.outputs().size(); ++k) add(at(graph.outputs()[k]).to, graph.output_schemas()[k]);
  for (const Layer& layer : graph.layers()) {
    if (layer.type == "constant") add(at(layer.output()).from, constant_schema(layer));
  }
  for (const auto& [layer, candidates] : offers) {
    for (const Candidate& candidate : *candidates) {
      for (size_t k = 0; k < candidate.outs.size(); ++k) add(at(layer->outputs[k]).from, candidate.outs[k]);
      for (size_t i = 0; i < candidate.in.size(); ++i) add(at(layer->inputs[i]).to, candidate.in[i]);
    }
  }
  return blobs;
}

}  // namespace

Conversions possible_conversions(const Graph& graph, const std::vector<Offer>& offers, const Grids* grids) {
  const std::vector<Schemas> blobs = schemas_of(graph, offers);
  Conversions conversions(blobs.size());
  for (size_t b = 0; b < blobs.size(); ++b) {
    auto& steps = conversions[b];
    for (const Schema& source : blobs[b].from) {
      for (const Schema& target : blobs[b].to) {
        Schema at = source;
        const TensorDesc desc = stored(graph, grids, static_cast<int>(b), source, target);
        for (const Schema& next : adapt_chain(desc, source, target)) {
          const std::pair step(at, next);
          if (std::find(steps.begin(), steps.end(), step) == steps.end()) steps.push_back(step);
          at = next;
        }
      }
    }
  }
  return conversions;
}

}  // namespace softneuro
