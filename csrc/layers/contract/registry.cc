#include "layers/contract/registry.h"

#include <algorithm>
#include <charconv>
#include <map>

#include "base/error.h"
#include "base/text.h"
#include "layers/contract/naive.h"
#include "layers/contract/problem_class.h"

namespace softneuro {

#define SN_LAYER(type) const LayerDef& type##_layer();
#include "layers/contract/layers.inc"
#undef SN_LAYER

namespace {

using Routines = std::vector<std::unique_ptr<const Routine>>;

struct Registry {
  std::vector<const LayerDef*> defs;
  std::map<std::string, Routines, std::less<>> by_type;

  Registry() {
#define SN_LAYER(type) defs.push_back(&type##_layer());
#include "layers/contract/layers.inc"
#undef SN_LAYER
    for (const LayerDef* def : defs) {
      RoutineList list;
      def->add_routines(list);
      // Adapts exist between schemas, which a row-major reference cannot express.
      if (std::string_view(def->type) != "adapt") {
        list.begin(std::string(def->type) + "_naive");
        list.take_in(make_naive_routine(*def));
      }
      by_type.emplace(def->type, list.take());
    }
  }
};

const Registry& registry() {
  static const Registry instance;
  return instance;
}

// "{a=1,b=2}" against the routine's names; false if it does not parse.
bool parse_tuning(std::string_view text, const Routine& routine, Tuning& tuning) {
  for (const std::string& name : routine.param_names()) {
    const char opener = tuning.empty() ? '{' : ',';
    if (text.size() < name.size() + 2 || text[0] != opener || text.substr(1, name.size()) != name ||
        text[name.size() + 1] != '=') {
      return false;
    }
    text.remove_prefix(name.size() + 2);
    int value = 0;
    const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
    if (result.ec != std::errc()) return false;
    text.remove_prefix(static_cast<size_t>(result.ptr - text.data()));
    tuning.push_back(value);
  }
  return tuning.empty() ? text.empty() : text == "}";
}

}  // namespace

std::span<const LayerDef* const> layer_defs() { return registry().defs; }

const LayerDef& layer_def(std::string_view type) {
  std::vector<std::string_view> names;
  for (const LayerDef* def : registry().defs) {
    if (type == def->type) return *def;
    names.push_back(def->type);
  }
  throw Error("unknown layer type '" + std::string(type) + "'", {},
              "did you mean '" + std::string(nearest_name(type, names)) + "'?");
}

std::span<const std::unique_ptr<const Routine>> routines(std::string_view type) {
  return registry().by_type.find(layer_def(type).type)->second;
}

bool may_write_bytes(std::string_view type) {
  const auto list = routines(type);
  return std::any_of(list.begin(), list.end(), [](const auto& routine) {
    return routine->info().out.dtype == DType::qint8 && !routine->info().view;
  });
}

namespace {

// Convolutions of images without rows or columns, all of them padding: tile and strip sizes would be zero.
bool is_from_nothing(const Problem& problem) {
  const auto& weights = problem.layer->weights;
  const bool has_kernel =
      std::any_of(weights.begin(), weights.end(), [](const auto& weight) { return weight.second->shape().rank() > 2; });
  return has_kernel && !problem.in.empty() && problem.in.front().shape.elements() == 0 && !problem.outs.empty() &&
         problem.out().shape.elements() != 0;
}

// Whether a problem is more than its class.
bool has_class(const Problem& problem) {
  const auto quantized = [](const TensorDesc& desc) { return desc.quantization != nullptr; };
  return !problem.layer->weights.empty() || std::any_of(problem.in.begin(), problem.in.end(), quantized) ||
         std::any_of(problem.outs.begin(), problem.outs.end(), quantized);
}

Refusal plain_accepted(const Routine& routine, const Problem& problem) {
  if (!routine.info().fallback && is_from_nothing(problem)) return "the input has no elements";
  for (int i = 0; i < static_cast<int>(problem.in.size()); ++i) {
    const Refusal refusal = fits(problem.in[static_cast<size_t>(i)], routine.input_schema(problem, i));
    if (!refusal.accepted()) return "input " + std::to_string(i) + ": " + refusal.reason();
  }
  const bool quantizes = problem.layer->post.quantize != nullptr;
  if (quantizes && routine.output_schema(problem, 0).dtype != DType::qint8 && !routine.info().fallback) {
    return "does not quantize";
  }
  if (problem.layer->post.quantize_first != nullptr && !routine.info().quantizes_first && !routine.info().fallback) {
    return "does not quantize before it adds";
  }
  for (int k = 0; k < static_cast<int>(problem.outs.size()); ++k) {
    if (Refusal refusal = fits(problem.outs[static_cast<size_t>(k)], routine.output_schema(problem, k));
        !refusal.accepted())
      return refusal;
  }
  return routine.check(problem);
}

std::vector<const Routine*> plain_accepting(const Problem& problem,
                                            std::vector<std::pair<std::string, std::string>>* refusals) {
  std::vector<const Routine*> accepted, fallbacks;
  for (const auto& routine : routines(problem.layer->type)) {
    Refusal refusal;
    if (!isa_available(routine->info().isa)) {
      refusal = Refusal("needs " + std::string(isa_name(routine->info().isa)));
    } else {
      refusal = plain_accepted(*routine, problem);
    }
    if (refusal.accepted()) {
      (routine->info().fallback ? fallbacks : accepted).push_back(routine.get());
    } else if (refusals != nullptr) {
      refusals->emplace_back(routine->descriptor(), refusal.reason());
    }
  }
  return accepted.empty() ? fallbacks : accepted;
}

}  // namespace

Refusal accepts(const Routine& routine, const Problem& problem) {
  return plain_accepted(routine, has_class(problem) ? PlainProblem(problem).problem() : problem);
}

std::vector<Tuning> tunings(const Routine& routine, const Problem& problem) {
  return routine.tunings(PlainProblem(problem).problem());
}

std::vector<const Routine*> accepting_routines(const ProblemClass& problem,
                                               std::vector<std::pair<std::string, std::string>>* refusals) {
  return plain_accepting(problem.problem(), refusals);
}

std::vector<const Routine*> accepting_routines(const Problem& problem,
                                               std::vector<std::pair<std::string, std::string>>* refusals) {
  return plain_accepting(PlainProblem(problem).problem(), refusals);
}

RoutineChoice find_routine(std::string_view descriptor) {
  const std::string_view type = descriptor.substr(0, descriptor.find('/'));
  for (const auto& routine : routines(type)) {
    const std::string plain = routine->descriptor();
    if (!descriptor.starts_with(plain)) continue;
    Tuning tuning;
    if (parse_tuning(descriptor.substr(plain.size()), *routine, tuning)) return {routine.get(), std::move(tuning)};
  }
  throw Error("no routine '" + std::string(descriptor.substr(0, 200)) + "'", {},
              "softneuro.registry() lists them; a plan of another version must be tuned again");
}

const Routine* adapt_routine(const TensorDesc& desc, const Schema& from, const Schema& to) {
  static const Layer layer = [] {
    Layer adapt;
    adapt.type = "adapt";
    return adapt;
  }();
  const Problem problem{&layer, {desc}, desc, 1};
  for (const auto& routine : routines("adapt")) {
    const RoutineInfo& info = routine->info();
    if (info.in == from && info.out == to && isa_available(info.isa) && accepts(*routine, problem).accepted()) {
      return routine.get();
    }
  }
  return nullptr;
}

std::vector<Schema> adapt_chain(const TensorDesc& desc, const Schema& from, const Schema& to) {
  if (from == to) return {};
  // Breadth first; each schema remembers the one that it was reached from.
  std::vector<std::pair<Schema, size_t>> reached{{from, 0}};
  const auto known = [&](const Schema& schema) {
    return std::any_of(reached.begin(), reached.end(), [&](const auto& r) { return r.first == schema; });
  };
  for (size_t at = 0; at < reached.size(); ++at) {
    std::vector<Schema> next{to};
    for (const auto& routine : routines("adapt")) {
      if (routine->info().in == reached[at].first) next.push_back(routine->info().out);
    }
    for (const Schema& schema : next) {
      if (known(schema) || adapt_routine(desc, reached[at].first, schema) == nullptr) continue;
      reached.emplace_back(schema, at);
      if (schema != to) continue;
      std::vector<Schema> chain;
      for (size_t i = reached.size() - 1; i != 0; i = reached[i].second) chain.insert(chain.begin(), reached[i].first);
      return chain;
    }
  }
  return {};
}

}  // namespace softneuro
