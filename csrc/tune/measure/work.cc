#include "tune/measure/work.h"

#include <algorithm>
#include <cmath>

#include "graph/forms.h"
#include "layers/constant/constant.h"
#include "tune/search/conversions.h"
#include "tune/search/pinned.h"

namespace softneuro {
namespace {

// A concatenation costs what cannot be written in place: the planner puts an input there when its only other readers
// are not concatenations before this one, and when images need not be interleaved.
double copied_fraction(const Graph& graph, int index) {
  const Layer& layer = graph.layers()[static_cast<size_t>(index)];
  const auto axis = static_cast<int>(layer.attrs.integer("axis"));
  const Shape& out = graph.blob(layer.output()).desc.shape;
  if (out.product(0, axis) != 1 || out.elements() == 0) return 1;
  int64_t copied = 0;
  for (const int input : layer.inputs) {
    const auto readers = graph.consumers(input);
    const auto first = std::find_if(readers.begin(), readers.end(), [&](int reader) {
      return graph.layers()[static_cast<size_t>(reader)].type == "concat";
    });
    const bool placed = graph.blob(input).producer >= 0 && !graph.is_output(input) && *first == index;
    if (!placed) copied += graph.blob(input).desc.shape.elements();
  }
  return static_cast<double>(copied) / static_cast<double>(out.elements());
}

std::string conversion_key(const TensorDesc& desc, const Routine& routine) {
  return "adapt " + desc.str() + " " + routine.descriptor();
}

// Who writes and reads the graph's blobs.
std::vector<Offer> offers(const Graph& graph, const Work& work, const GraphCosts& costs) {
  std::vector<Offer> list;
  for (size_t l = 0; l < graph.layers().size(); ++l) {
    const Layer& layer = graph.layers()[l];
    if (layer.type != "constant") list.push_back({&layer, &work.layers[work.of_layer[l]].candidates});
  }
  for (size_t f = 0; f < costs.fusions.size(); ++f) {
    list.push_back({&costs.fusions[f].layer, &work.layers[work.of_fusion[f]].candidates});
  }
  return list;
}

}  // namespace

Work collect(const Graph& graph, const TuneSettings& settings, GraphCosts& costs) {
  Work work;
  const auto add_schema = [&](const Schema& schema) {
    if (costs.schema_index(schema) < 0) costs.schemas.push_back(schema);
  };
  add_schema(f32_nchw);
  for (const Schema& schema : graph.input_schemas()) add_schema(schema);
  for (const Schema& schema : graph.output_schemas()) add_schema(schema);
  for (const Layer& layer : graph.layers()) {
    if (layer.type == "constant") add_schema(constant_schema(layer));
  }
  const Calibration* calibration = settings.calibration.get();
  const Grids* grids = calibration != nullptr ? calibration->grids.get() : nullptr;
  if (grids != nullptr) costs.grids = calibration->grids;
  costs.fusions = find_fusions(graph, grids);
  const size_t layers = graph.layers().size();
  std::map<std::string, size_t> by_class;
  for (size_t l = 0; l < layers + costs.fusions.size(); ++l) {
    size_t& item = (l < layers ? work.of_layer : work.of_fusion).emplace_back(0);
    if (l < layers && graph.layers()[l].type == "constant") continue;
    Problem problem = l < layers ? graph.problem(static_cast<int>(l), settings.threads)
                                 : fusion_problem(graph, costs.fusions[l - layers], settings.threads);
    ProblemClass cls(problem);
    const auto [known, fresh] = by_class.emplace(cls.str(), work.layers.size());
    item = known->second;
    if (!fresh) {
      ++work.uses[known->second];
      continue;
    }
    work.uses.push_back(1);
    const Fusion* fusion = l < layers ? nullptr : &costs.fusions[l - layers];
    SearchLimits limits = settings.limits;
    limits.rounded_anyway = fusion != nullptr && fusion->is_form();
    auto candidates = enumerate_candidates(cls, problem, limits);
    if (fusion != nullptr) {  // the naive routine would compute a fusion where nothing asks for it
      std::erase_if(candidates, [&](const Candidate& c) {
        return c.choice.routine->info().fallback || (fusion->is_form() && !computes_form(c.choice, *fusion));
      });
    }
    for (const Candidate& candidate : candidates) {
      for (const Schema& schema : candidate.in) add_schema(schema);
      for (const Schema& schema : candidate.outs) add_schema(schema);
    }
    work.layers.push_back({std::move(problem), std::move(cls), std::move(candidates), nullptr});
  }
  add_asked(graph, settings, work, costs);
  add_childnet_parts(work.layers, settings.threads);
  work.uses.resize(work.layers.size(), 1);
  work.instead.resize(work.layers.size());
  for (size_t f = 0; f < costs.fusions.size(); ++f) {
    auto& instead = work.instead[work.of_fusion[f]];
    if (!instead.empty() || costs.fusions[f].is_form()) continue;
    for (const int layer : costs.fusions[f].layers) instead.push_back(work.of_layer[static_cast<size_t>(layer)]);
  }
  const Conversions meetings = possible_conversions(graph, offers(graph, work, costs), grids);
  for (size_t b = 0; b < meetings.size(); ++b) {
    for (const auto& [from, to] : meetings[b]) {
      const TensorDesc desc = stored(graph, grids, static_cast<int>(b), from, to);
      add_schema(from);
      add_schema(to);
      const Routine* routine = adapt_routine(desc, from, to);
      if (routine == nullptr ||
          !work.by_conversion.emplace(conversion_key(desc, *routine), work.adapts.size()).second) {
        continue;
      }
      work.adapts.push_back({desc, routine, routine->info().view ? 0 : estimate_adapt_seconds(desc, from, to)});
    }
  }
  return work;
}

namespace {

// Whether a fusion's other candidate is as fast, as exact and as small, as far as is known.
bool makes_needless(const Candidate& other, const Candidate& candidate) {
  const Routine &a = *other.choice.routine, &b = *candidate.choice.routine;
  const bool alike = &a == &b || (other.measured && candidate.measured && a.info().error == b.info().error &&
                                  other.in == candidate.in && other.outs == candidate.outs);
  if (!alike || other.error > candidate.error) return false;
  if (other.measured != candidate.measured) return other.measured;
  return other.seconds <= candidate.seconds && other.packed_bytes <= candidate.packed_bytes;
}

// A fusion's routines for each of its schemas and kinds of error, less those that others make needless. What was not
// measured is dearer than the layers' own routines, and all of it is there: a plan for another shape may ask for any.
void distribute_fusions(const Work& work, GraphCosts& costs) {
  for (size_t f = 0; f < costs.fusions.size(); ++f) {
    const Fusion& fusion = costs.fusions[f];
    const size_t first = costs.fused.size();
    for (const Candidate& candidate : work.layers[work.of_fusion[f]].candidates) {
      const auto begin = costs.fused.begin() + static_cast<ptrdiff_t>(first);
      if (std::any_of(begin, costs.fused.end(),
                      [&](const FusedCost& other) { return makes_needless(other.candidate, candidate); })) {
        continue;
      }
      costs.fused.erase(
          std::remove_if(begin, costs.fused.end(),
                         [&](const FusedCost& other) { return makes_needless(candidate, other.candidate); }),
          costs.fused.end());
      costs.fused.push_back({&fusion, candidate});
    }
    double own = 0;
    for (const int layer : fusion.layers) {
      double least = INFINITY;
      for (const Candidate& one : costs.layers[static_cast<size_t>(layer)]) least = std::min(least, one.seconds);
      own += 1.1 * least;
    }
    for (size_t i = first; i < costs.fused.size(); ++i) {
      Candidate& candidate = costs.fused[i].candidate;
      if (!candidate.measured) candidate.seconds = candidate.forecast ? std::max(own, candidate.seconds) : own;
    }
  }
}

}  // namespace

void distribute(const Graph& graph, const Work& work, GraphCosts& costs) {
  costs.layers.clear();
  costs.fused.clear();
  for (size_t l = 0; l < graph.layers().size(); ++l) {
    costs.layers.emplace_back();
    const Layer& layer = graph.layers()[l];
    if (layer.type == "constant") continue;
    costs.layers.back() = work.layers[work.of_layer[l]].candidates;
    if (layer.type != "concat") continue;
    const double fraction = copied_fraction(graph, static_cast<int>(l));
    for (Candidate& candidate : costs.layers.back()) candidate.seconds *= fraction;
  }
  distribute_fusions(work, costs);
  const size_t n = costs.schemas.size();
  costs.adapts.assign(graph.blobs().size(), std::vector<double>(n * n, INFINITY));
  const Conversions meetings = possible_conversions(graph, offers(graph, work, costs), costs.grids.get());
  for (size_t b = 0; b < meetings.size(); ++b) {
    for (size_t same = 0; same < n; ++same) costs.adapts[b][same * n + same] = 0;
    for (const auto& [from, to] : meetings[b]) {
      const TensorDesc desc = stored(graph, costs.grids.get(), static_cast<int>(b), from, to);
      const Routine* routine = adapt_routine(desc, from, to);
      if (routine == nullptr) continue;
      const auto entry =
          static_cast<size_t>(costs.schema_index(from)) * n + static_cast<size_t>(costs.schema_index(to));
      costs.adapts[b][entry] = work.adapts[work.by_conversion.at(conversion_key(desc, *routine))].seconds;
    }
  }
}

}  // namespace softneuro
