#include "tune/search/pinned.h"

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "graph/forms.h"

namespace softneuro {
namespace {

const Layer& layer_at(const Graph& graph, int index) { return graph.layers()[static_cast<size_t>(index)]; }

// Whether a fusion of this type ends in the layer.
bool ends_fusion(const std::vector<Fusion>& fusions, int layer, const std::string& type) {
  return std::any_of(fusions.begin(), fusions.end(),
                     [&](const Fusion& fusion) { return fusion.layers.back() == layer && fusion.layer.type == type; });
}

// What is asked of a layer; of several routines the last. A pattern with wildcards passes layers of other types by.
const Fixed* fixed_at(const Graph& graph, const std::vector<Fusion>& fusions, const Pins& pins, int index) {
  const Layer& layer = layer_at(graph, index);
  if (layer.type == "constant") return nullptr;
  const Fixed* found = nullptr;
  for (const Fixed& fixed : pins.fixed) {
    if (!matches(fixed.pattern, layer.name)) continue;
    if (fixed.type() == layer.type || ends_fusion(fusions, index, fixed.type())) {
      found = &fixed;
    } else if (!is_pattern(fixed.pattern) && found == nullptr) {
      // Another layer of that name may be of the type: a host's op may be several of ours.
      const auto& layers = graph.layers();
      const bool other = std::any_of(layers.begin(), layers.end(), [&](const Layer& one) {
        return one.name == layer.name && one.type == fixed.type();
      });
      if (!other) found = &fixed;
    }
  }
  return found;
}

std::vector<const Keep*> kept_at(const Layer& layer, const Pins& pins) {
  std::vector<const Keep*> found;
  if (layer.type == "constant") return found;
  for (const Keep& keep : pins.keep) {
    if (matches(keep.pattern, layer.name)) found.push_back(&keep);
  }
  return found;
}

bool allows(const Keep& keep, const std::vector<TensorDesc>& descs, const std::vector<Schema>& schemas) {
  for (size_t i = 0; i < std::min(descs.size(), schemas.size()); ++i) {
    if (descs[i].kind == ValueKind::real && !keep.allows(schemas[i])) return false;
  }
  return true;
}

template <typename Descs>
bool allows(const std::vector<const Keep*>& kept, const Problem& problem, const Descs& in, const Descs& outs) {
  const std::vector<TensorDesc> reads(problem.in.begin(), problem.in.end());
  const std::vector<TensorDesc> writes(problem.outs.begin(), problem.outs.end());
  return std::all_of(kept.begin(), kept.end(),
                     [&](const Keep* keep) { return allows(*keep, reads, in) && allows(*keep, writes, outs); });
}

std::string text_of(const Keep& keep) { return "keep=" + keep.pattern + ":" + keep.form; }
std::string text_of(const Fixed& fixed) { return "fixed=" + fixed.pattern + "=" + fixed.descriptor(); }

Candidate asked_candidate(const Problem& problem, const RoutineChoice& choice) {
  const Routine& routine = *choice.routine;
  Candidate candidate;
  candidate.choice = choice;
  candidate.descriptor = choice.descriptor();
  candidate.in = routine.input_schemas(problem);
  candidate.outs = routine.output_schemas(problem);
  candidate.packed_bytes = routine.packed_bytes(problem, choice.tuning);
  candidate.error = routine.expected_error(problem, choice.tuning);
  candidate.seconds = routine.info().view ? 0 : estimate_seconds(problem, 0);
  candidate.only_asked = true;
  return candidate;
}

// Why a routine is not to be had for a layer's own problem, or that of a fusion that ends in it; the nearest that is,
// for the remedy.
PinError declined(const Layer& layer, const Problem& problem, const Fixed& fixed,
                  const std::vector<Candidate>& others) {
  std::string reason;
  if (fixed.type() != problem.layer->type) {
    reason = "it is of type " + layer.type + ", and no " + fixed.type() + " ends in it";
  } else if (!isa_available(fixed.routine->info().isa)) {
    reason = "this machine cannot run " + std::string(isa_name(fixed.routine->info().isa)) + " code";
  } else if (const Refusal refusal = accepts(*fixed.routine, problem); !refusal.accepted()) {
    reason = "the routine declines: " + refusal.reason();
  } else if (const auto offered = tunings(*fixed.routine, problem);
             fixed.tuning && std::find(offered.begin(), offered.end(), *fixed.tuning) == offered.end()) {
    reason = "the routine does not offer these params for it";
  } else {
    reason = "what else is asked of it and of the layers around it leaves nothing of that";
  }
  std::vector<std::string_view> names;
  for (const Candidate& candidate : others) {
    if (!candidate.only_asked) names.push_back(candidate.descriptor);
  }
  const std::string nearest(nearest_name(fixed.descriptor(), names));
  return PinError("it cannot be as " + text_of(fixed) + " asks: " + reason, "layer '" + layer.name + "'",
                  nearest.empty() ? "leave it out of `fixed`" : "the nearest that there is: " + nearest);
}

// Whether a class's candidates have what is asked for; else what of it is to be had.
std::vector<Candidate> missing(const Fixed& fixed, const Problem& problem, const std::vector<Candidate>& known) {
  std::vector<Candidate> found;
  if (fixed.type() != problem.layer->type || !isa_available(fixed.routine->info().isa)) return found;
  const auto has = [&](const Candidate& candidate) { return fixed.is(candidate.choice); };
  if (std::any_of(known.begin(), known.end(), has) || !accepts(*fixed.routine, problem).accepted()) return found;
  for (const Tuning& tuning : tunings(*fixed.routine, problem)) {
    const RoutineChoice choice{fixed.routine, tuning};
    if (fixed.is(choice)) found.push_back(asked_candidate(problem, choice));
  }
  return found;
}

// By layer of the graph.
struct Asked {
  std::vector<const Fixed*> fixed;
  std::vector<std::vector<const Keep*>> kept;

  Asked(const Graph& graph, const std::vector<Fusion>& fusions, const Pins& pins) {
    for (size_t l = 0; l < graph.layers().size(); ++l) {
      fixed.push_back(fixed_at(graph, fusions, pins, static_cast<int>(l)));
      kept.push_back(kept_at(graph.layers()[l], pins));
    }
  }
  // Of the layer where a fusion ends: the fusion's routine, if that is what is asked for.
  const Fixed* of_fusion(const Fusion& fusion) const {
    const Fixed* own = fixed[static_cast<size_t>(fusion.layers.back())];
    if (own == nullptr || own->type() != fusion.layer.type) return nullptr;
    const bool declines = fusion.is_form() && !computes_form({own->routine, own->tuning.value_or(Tuning())}, fusion);
    return declines ? nullptr : own;
  }
  bool allows_fusion(const Fusion& fusion, const Problem& problem, const Candidate& candidate) const {
    for (const int layer : fusion.layers) {
      const auto l = static_cast<size_t>(layer);
      if (!allows(kept[l], problem, candidate.in, candidate.outs)) return false;
      // Whoever names a type for a layer's blobs means its weights, too.
      if (fusion.is_form() && fusion.kind != "bytes" && !kept[l].empty()) return false;
      if (fixed[l] == nullptr) continue;
      const bool its = layer == fusion.layers.back() && fixed[l]->type() == fusion.layer.type;
      if (!its || !fixed[l]->is(candidate.choice)) return false;
    }
    return true;
  }
};

}  // namespace

void warn_of_unmatched(const Graph& graph, const Pins& pins) {
  std::vector<std::string_view> names;
  for (const Layer& layer : graph.layers()) {
    if (layer.type != "constant") names.emplace_back(layer.name);
  }
  const auto check = [&](const std::string& option, const std::string& pattern) {
    const bool any = std::any_of(names.begin(), names.end(), [&](auto name) { return matches(pattern, name); });
    if (any || names.empty()) return;
    std::string plain = pattern;
    std::erase_if(plain, [](char c) { return c == '*' || c == '?'; });
    std::string nearest;
    for (const std::string_view name : nearest_names(plain, names, 3)) {
      nearest += (nearest.empty() ? "'" : ", '") + std::string(name) + "'";
    }
    log_warning("option " + option + ": '" + pattern + "' matches no layer of this graph; the nearest are " + nearest);
  };
  for (const Keep& keep : pins.keep) check("keep", keep.pattern);
  for (const Fixed& fixed : pins.fixed) check("fixed", fixed.pattern);
}

void add_asked(const Graph& graph, const TuneSettings& settings, Work& work, GraphCosts& costs) {
  if (settings.pins.fixed.empty()) return;
  const Asked asked(graph, costs.fusions, settings.pins);
  const auto add = [&](const Fixed* fixed, size_t item, const Problem& problem) {
    if (fixed == nullptr) return;
    auto& known = work.layers[item].candidates;
    for (Candidate& candidate : missing(*fixed, problem, known)) {
      for (const auto& schemas : {candidate.in, candidate.outs}) {
        for (const Schema& schema : schemas) {
          if (costs.schema_index(schema) < 0) costs.schemas.push_back(schema);
        }
      }
      known.push_back(std::move(candidate));
    }
  };
  for (size_t l = 0; l < graph.layers().size(); ++l) {
    if (asked.fixed[l] == nullptr) continue;
    add(asked.fixed[l], work.of_layer[l], graph.problem(static_cast<int>(l), settings.threads));
  }
  for (size_t f = 0; f < costs.fusions.size(); ++f) {
    const Fusion& fusion = costs.fusions[f];
    add(asked.of_fusion(fusion), work.of_fusion[f], fusion_problem(graph, fusion, settings.threads));
  }
}

void leave_asked(const Graph& graph, const TuneSettings& settings, const Work& work, GraphCosts& costs) {
  if (settings.pins.empty()) return;
  const Asked asked(graph, costs.fusions, settings.pins);
  // A fusion's candidate may be gone for being slower than another; not if it is the one that is asked for.
  for (size_t f = 0; f < costs.fusions.size(); ++f) {
    const Fusion& fusion = costs.fusions[f];
    const Fixed* own = asked.of_fusion(fusion);
    const auto has = [&](const FusedCost& fused) { return fused.fusion == &fusion && own->is(fused.candidate.choice); };
    if (own == nullptr || std::any_of(costs.fused.begin(), costs.fused.end(), has)) continue;
    for (const Candidate& candidate : work.layers[work.of_fusion[f]].candidates) {
      if (own->is(candidate.choice)) costs.fused.push_back({&fusion, candidate});
    }
  }
  std::erase_if(costs.fused, [&](const FusedCost& fused) {
    const bool its_own = asked.of_fusion(*fused.fusion) != nullptr;
    return (fused.candidate.only_asked && !its_own) ||
           !asked.allows_fusion(*fused.fusion, fusion_problem(graph, *fused.fusion, settings.threads), fused.candidate);
  });
  std::vector<bool> fusible(graph.layers().size());
  for (const FusedCost& fused : costs.fused) {
    for (const int layer : fused.fusion->layers) fusible[static_cast<size_t>(layer)] = true;
  }
  for (size_t l = 0; l < graph.layers().size(); ++l) {
    const Layer& layer = graph.layers()[l];
    if (layer.type == "constant") continue;
    const Fixed* fixed = asked.fixed[l];
    const Problem problem = graph.problem(static_cast<int>(l), settings.threads);
    std::vector<Candidate>& candidates = costs.layers[l];
    const std::vector<Candidate> all = candidates;
    std::erase_if(candidates, [&](const Candidate& candidate) {
      return fixed != nullptr ? !fixed->is(candidate.choice) : candidate.only_asked;
    });
    if (candidates.empty() && !fusible[l] && fixed != nullptr) {
      const auto fusion = std::find_if(costs.fusions.begin(), costs.fusions.end(), [&](const Fusion& one) {
        return one.layers.back() == static_cast<int>(l) && one.layer.type == fixed->type() && !one.is_form();
      });
      if (fusion == costs.fusions.end()) throw declined(layer, problem, *fixed, all);
      const size_t item = work.of_fusion[static_cast<size_t>(fusion - costs.fusions.begin())];
      throw declined(layer, fusion_problem(graph, *fusion, settings.threads), *fixed, work.layers[item].candidates);
    }
    std::erase_if(candidates, [&](const Candidate& candidate) {
      return !allows(asked.kept[l], problem, candidate.in, candidate.outs);
    });
    if (!candidates.empty() || fusible[l]) continue;
    std::string texts, forms;
    for (const Keep* keep : asked.kept[l]) texts += (texts.empty() ? "" : " and ") + text_of(*keep);
    std::vector<std::string> seen;
    for (const Candidate& candidate : all) {
      const std::string form = candidate.outs.empty() ? "" : candidate.outs[0].str();
      if (std::find(seen.begin(), seen.end(), form) != seen.end()) continue;
      seen.push_back(form);
      forms += (forms.empty() ? "" : ", ") + form;
    }
    throw PinError("no routine" + (fixed != nullptr ? " that " + text_of(*fixed) + " allows" : "") +
                       " reads and writes as " + texts + " asks",
                   "layer '" + layer.name + "'",
                   "allow the type in `schemas`, or give one of what it can write: " + forms);
  }
}

std::optional<std::string> not_as_asked(const Graph& graph, const Assignment& plan, const TuneSettings& settings) {
  if (settings.pins.empty() || plan.layers.size() != graph.layers().size()) return {};
  const std::vector<Fusion> fusions = find_fusions(graph, plan.grids.get());
  const Asked asked(graph, fusions, settings.pins);
  std::vector<bool> covered(graph.layers().size());
  for (size_t l = 0; l < covered.size(); ++l) {
    covered[l] = plan.layers[l].routine == nullptr && graph.layers()[l].type != "constant";
  }
  const auto differs = [&](const Layer& layer, const RoutineChoice& choice) {
    return "layer '" + layer.name + "' runs " + choice.descriptor();
  };
  for (size_t l = 0; l < covered.size(); ++l) {
    const RoutineChoice& choice = plan.layers[l];
    if (choice.routine == nullptr) continue;
    const auto index = static_cast<int>(l);
    const Fusion* fusion = fusion_at(fusions, index, choice, covered);
    const Problem problem =
        fusion != nullptr ? fusion_problem(graph, *fusion, settings.threads) : graph.problem(index, settings.threads);
    Candidate candidate;
    candidate.choice = choice;
    candidate.in = choice.routine->input_schemas(problem);
    candidate.outs = choice.routine->output_schemas(problem);
    const Layer& layer = graph.layers()[l];
    if (fusion != nullptr) {
      if (!asked.allows_fusion(*fusion, problem, candidate)) return differs(layer, choice);
      continue;
    }
    if (asked.fixed[l] != nullptr && !asked.fixed[l]->is(choice)) return differs(layer, choice);
    if (!allows(asked.kept[l], problem, candidate.in, candidate.outs)) return differs(layer, choice);
  }
  return {};
}

std::string asked_text(const Graph& graph, const Pins& pins) {
  if (pins.empty()) return {};
  const std::vector<Fusion> fusions = find_fusions(graph, nullptr);
  const Asked asked(graph, fusions, pins);
  std::string text;
  for (size_t l = 0; l < graph.layers().size(); ++l) {
    const std::string number = std::to_string(l) + " ";
    if (asked.fixed[l] != nullptr) text += number + asked.fixed[l]->descriptor() + "\n";
    for (const Keep* keep : asked.kept[l]) text += number + keep->form + "\n";
  }
  return text;
}

}  // namespace softneuro
