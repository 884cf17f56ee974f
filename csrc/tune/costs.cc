#include "tune/costs.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "layers/constant/constant.h"
#include "tune/childnets.h"
#include "tune/conversions.h"
#include "tune/cost_keys.h"
#include "tune/cost_log.h"
#include "tune/pace.h"

namespace softneuro {
namespace {

using Clock = Profiler::Clock;

constexpr double unit_share = 0.85;  // of the time budget; plans as wholes have the rest
constexpr double pace_share = 0.08;

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

// Everything that needs a cost, each distinct thing once.
struct Work {
  struct AdaptItem {
    TensorDesc desc;
    const Routine* routine;
    double seconds = 0;
  };
  std::vector<LayerCandidates> layers;   // fusions and the parts of childnets too
  std::map<std::string, size_t> by_key;  // unit_key
  std::vector<AdaptItem> adapts;
  std::map<std::string, size_t> by_conversion;
};

std::string conversion_key(const TensorDesc& desc, const Routine& routine) {
  return "adapt " + desc.str() + " " + routine.descriptor();
}

// Layers that have the same candidates. Some of these may ask for what is special about weights.
std::string unit_key(const Problem& problem) { return problem.signature() + problem.pattern(); }

// Who writes and reads the graph's blobs.
std::vector<Offer> offers(const Graph& graph, const Work& work, const GraphCosts& costs, const TuneSettings& settings) {
  std::vector<Offer> list;
  const auto candidates = [&](const Problem& problem) {
    return &work.layers[work.by_key.at(unit_key(problem))].candidates;
  };
  for (size_t l = 0; l < graph.layers().size(); ++l) {
    const Layer& layer = graph.layers()[l];
    if (layer.type == "constant") continue;
    list.push_back({&layer, candidates(graph.problem(static_cast<int>(l), settings.threads))});
  }
  for (const Fusion& fusion : costs.fusions)
    list.push_back({&fusion.layer, candidates(fusion_problem(graph, fusion, settings.threads))});
  return list;
}

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
  costs.fusions = find_fusions(graph);
  const size_t layers = graph.layers().size();
  for (size_t l = 0; l < layers + costs.fusions.size(); ++l) {
    if (l < layers && graph.layers()[l].type == "constant") continue;
    Problem problem = l < layers ? graph.problem(static_cast<int>(l), settings.threads)
                                 : fusion_problem(graph, costs.fusions[l - layers], settings.threads);
    if (!work.by_key.emplace(unit_key(problem), work.layers.size()).second) continue;
    auto candidates = enumerate_candidates(problem, settings.limits);
    if (l >= layers) {  // the naive routine would compute a fusion where nothing asks for it
      std::erase_if(candidates, [](const Candidate& c) { return c.choice.routine->info().fallback; });
    }
    for (const Candidate& candidate : candidates) {
      for (const Schema& schema : candidate.in) add_schema(schema);
      for (const Schema& schema : candidate.outs) add_schema(schema);
    }
    std::string signature = problem.signature();
    work.layers.push_back({std::move(problem), std::move(signature), std::move(candidates), nullptr});
  }
  add_childnet_parts(work.layers, settings.threads);
  const Conversions meetings = possible_conversions(graph, offers(graph, work, costs, settings));
  for (size_t b = 0; b < meetings.size(); ++b) {
    const TensorDesc& desc = graph.blobs()[b].desc;
    for (const auto& [from, to] : meetings[b]) {
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
void distribute_fusions(const Graph& graph, const TuneSettings& settings, const Work& work, GraphCosts& costs) {
  for (const Fusion& fusion : costs.fusions) {
    const std::string key = unit_key(fusion_problem(graph, fusion, settings.threads));
    const size_t first = costs.fused.size();
    for (const Candidate& candidate : work.layers[work.by_key.at(key)].candidates) {
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
      if (!costs.fused[i].candidate.measured) costs.fused[i].candidate.seconds = own;
    }
  }
}

// Spreads the costs of distinct things over the graph.
void distribute(const Graph& graph, const TuneSettings& settings, const Work& work, GraphCosts& costs) {
  for (size_t l = 0; l < graph.layers().size(); ++l) {
    costs.layers.emplace_back();
    const Layer& layer = graph.layers()[l];
    if (layer.type == "constant") continue;
    const std::string key = unit_key(graph.problem(static_cast<int>(l), settings.threads));
    costs.layers.back() = work.layers[work.by_key.at(key)].candidates;
    if (layer.type != "concat") continue;
    const double fraction = copied_fraction(graph, static_cast<int>(l));
    for (Candidate& candidate : costs.layers.back()) candidate.seconds *= fraction;
  }
  distribute_fusions(graph, settings, work, costs);
  const size_t n = costs.schemas.size();
  costs.adapts.assign(graph.blobs().size(), std::vector<double>(n * n, INFINITY));
  const Conversions meetings = possible_conversions(graph, offers(graph, work, costs, settings));
  for (size_t b = 0; b < meetings.size(); ++b) {
    const TensorDesc& desc = graph.blobs()[b].desc;
    for (size_t same = 0; same < n; ++same) costs.adapts[b][same * n + same] = 0;
    for (const auto& [from, to] : meetings[b]) {
      const Routine* routine = adapt_routine(desc, from, to);
      if (routine == nullptr) continue;
      const auto entry =
          static_cast<size_t>(costs.schema_index(from)) * n + static_cast<size_t>(costs.schema_index(to));
      costs.adapts[b][entry] = work.adapts[work.by_conversion.at(conversion_key(desc, *routine))].seconds;
    }
  }
}

}  // namespace

// As reals in float32, whatever the model has them in: what routines pack is measured by it.
double model_weight_bytes(const Graph& graph) {
  double total = 0;
  for (const Layer& layer : graph.layers()) {
    for (const auto& [role, value] : layer.weights) total += static_cast<double>(bytes(value->desc(), f32_nchw));
  }
  return total;
}

int GraphCosts::schema_index(const Schema& schema) const {
  const auto at = std::find(schemas.begin(), schemas.end(), schema);
  return at == schemas.end() ? -1 : static_cast<int>(at - schemas.begin());
}

GraphCosts guess_costs(const Graph& graph, const TuneSettings& settings) {
  GraphCosts costs;
  const Work work = collect(graph, settings, costs);
  for (const auto& item : work.layers) costs.candidates += static_cast<int>(item.candidates.size());
  costs.candidates += static_cast<int>(work.adapts.size());
  costs.guessed = costs.candidates;
  distribute(graph, settings, work, costs);
  return costs;
}

GraphCosts find_costs(const Graph& graph, const TuneSettings& settings, CostDb& db, const ParallelFor& parallel_for,
                      const Progress& progress, Timekeeper& timekeeper) {
  auto stage = std::make_optional<Timekeeper::Stage>(timekeeper, "enumerate");
  if (settings.mode == TuneMode::off) return guess_costs(graph, settings);
  GraphCosts costs;
  Work work = collect(graph, settings, costs);
  const Coldness coldness = coldness_for(static_cast<size_t>(model_weight_bytes(graph)));
  Ledger ledger(db, settings.threads);
  const auto signature_of = [&](const LayerCandidates& item, const Candidate& candidate) {
    const bool weights = !item.problem.layer->weights.empty();
    const bool by_pattern = candidate.choice.routine->info().by_pattern;
    return item.signature + (by_pattern ? item.problem.pattern() : "") + " " +
           std::string(coldness_name(weights ? coldness : Coldness::hot));
  };

  // What the database knows.
  stage.emplace(timekeeper, "recall");
  std::vector<std::vector<Candidate*>> missing(work.layers.size());
  std::vector<Work::AdaptItem*> missing_adapts;
  int total = 0;
  for (size_t i = 0; i < work.layers.size(); ++i) {
    auto& item = work.layers[i];
    for (Candidate& candidate : item.candidates) {
      if (is_childnet(candidate)) continue;
      if (candidate.choice.routine->info().view) {
        candidate.measured = true;
        continue;
      }
      ++costs.candidates;
      if (!measurable(item.problem)) continue;
      if (const auto known = ledger.find(signature_of(item, candidate), candidate.descriptor)) {
        candidate.seconds = *known;
        candidate.measured = true;
        ++costs.recalled;
      } else {
        missing[i].push_back(&candidate);
        ++total;
      }
    }
  }
  for (auto& item : work.adapts) {
    if (item.routine->info().view) continue;
    ++costs.candidates;
    if (const auto known = ledger.find(item.desc.str(), item.routine->descriptor())) {
      item.seconds = *known;
      ++costs.recalled;
    } else {
      missing_adapts.push_back(&item);
      ++total;
    }
  }

  if (settings.mode == TuneMode::profile && total > 0) {
    stage.emplace(timekeeper, "measure");
    Profiler profiler(settings.threads, parallel_for, coldness, timekeeper);
    const auto start = Clock::now();
    const auto left = [&] {
      return unit_share * settings.time_budget_s - std::chrono::duration<double>(Clock::now() - start).count();
    };
    int done = 0;
    for (auto* item : missing_adapts) {
      if (left() <= 0) break;
      item->seconds = profiler.measure_adapt(item->desc, *item->routine, 0.01);
      ledger.add(item->desc.str(), item->routine->descriptor(), item->seconds);
      ++costs.measured;
      if (progress) progress(++done, total);
    }
    size_t waiting =
        static_cast<size_t>(std::count_if(missing.begin(), missing.end(), [](const auto& m) { return !m.empty(); }));
    for (size_t i = 0; i < missing.size(); ++i) {
      // Layers that differ in what is special about their weights have candidates in common.
      done += static_cast<int>(std::erase_if(missing[i], [&](Candidate* candidate) {
        const auto known = ledger.find(signature_of(work.layers[i], *candidate), candidate->descriptor);
        if (!known) return false;
        candidate->seconds = *known;
        candidate->measured = true;
        ++costs.recalled;
        return true;
      }));
      if (missing[i].empty() || left() <= 0) continue;
      // Twice an even share: most layers stop well before theirs.
      profiler.measure(work.layers[i].problem, missing[i], 2 * left() / static_cast<double>(waiting--));
      for (const Candidate* candidate : missing[i]) {
        if (!candidate->measured) continue;
        ledger.add(signature_of(work.layers[i], *candidate), candidate->descriptor, candidate->seconds);
        ++costs.measured;
      }
      done += static_cast<int>(missing[i].size());
      if (progress) progress(done, total);
      log_costs(work.layers[i].signature, work.layers[i].candidates);
    }
    if (left() > 0) {
      std::vector<TimedLayer> timed;
      for (size_t i = 0; i < missing.size(); ++i) {
        const Problem& problem = work.layers[i].problem;
        if (problem.layer->host == nullptr) timed.push_back({&problem, missing[i]});
      }
      bring_to_one_pace(timed, profiler, std::min(left(), pace_share * settings.time_budget_s));
    }
    for (size_t i = 0; i < missing.size(); ++i) {
      for (const Candidate* candidate : missing[i]) {
        if (!candidate->measured) continue;
        ledger.add(signature_of(work.layers[i], *candidate), candidate->descriptor, candidate->seconds);
      }
    }
  }
  for (size_t i = 0; i < missing.size(); ++i) {
    if (missing[i].empty()) log_costs(work.layers[i].signature, work.layers[i].candidates);
  }
  stage.emplace(timekeeper, "enumerate");
  costs.guessed = costs.candidates - costs.measured - costs.recalled;
  sum_childnets(work.layers, settings.threads);
  distribute(graph, settings, work, costs);
  return costs;
}

}  // namespace softneuro
