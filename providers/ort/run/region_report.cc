// What a region tells of itself.
#include "providers/ort/run/region.h"
#include "runtime/plans.h"
#include "tune/plan/plan_graph.h"

namespace softneuro::ort {
namespace {

constexpr size_t most_plans = 256;

}  // namespace

std::string Region::text(std::span<const RunInput> inputs) {
  std::string text;
  for (const RunInput& input : inputs) {
    text += (text.empty() ? "" : ", ") + Shape(input.dims).str();
    if (input.type != DType::float32) text += " " + std::string(dtype_name(input.type));
  }
  return text;
}

void Region::note_prepared(const Signature& signature, const ShapeState& state, const Graph* graph) {
  if (graph != nullptr && state.plan != nullptr && !state.plan->result.carried) {
    const std::lock_guard lock(mutex_);
    if (plans_.size() < most_plans) plans_[signature] = to_plan(*graph, state.plan->result, state.plan->settings);
  }
  if (!settings_.report || !settings_.report->wanted()) return;
  Json line;
  line.add("event", "prepared").add("region", name()).add("inputs", state.inputs).add("host", state.host);
  line.add("threads", static_cast<double>(settings_.threads));
  if (graph != nullptr) line.add("graph_hash", graph->structural_hash());
  const Verdict& verdict = state.verdict;
  if (verdict.known) {
    line.add("seconds", verdict.seconds).add("host_seconds", verdict.host_seconds).add("error", verdict.error);
  }
  if (graph != nullptr && state.plan != nullptr) {
    const TuneResult& plan = state.plan->result;
    JsonList layers;
    for (const LayerReport& layer : plan.layers) {
      Json row;
      row.add("name", layer.name).add("type", layer.type).add("descriptor", layer.descriptor);
      row.add("seconds", layer.seconds).add("regret", layer.regret);
      if (!layer.in_floats.empty()) row.add("in_floats", layer.in_floats);
      row.add("dense_s", layer.dense_s).add("sparse_s", layer.sparse_s);
      row.add("measured", layer.measured ? 1 : 0);
      layers.add(row);
    }
    line.add("choices", choices_of(*state.plan)).add("foretold_error", plan.foretold_error);
    line.add("dense_s", plan.dense_s).add("best_s", plan.best_s);
    line.add("predicted_s", plan.predicted_s).add("lower_bound_s", plan.lower_bound_s);
    line.add("measured", plan.measured).add("recalled", plan.recalled).add("guessed", plan.guessed);
    if (state.stats) {
      line.add("peak_bytes", static_cast<double>(state.stats->peak_bytes()));
      line.add("packed_bytes", static_cast<double>(state.stats->packed_bytes));
    }
    line.add_raw("layers", layers.str());
  }
  settings_.report->write(line);
}

void Region::note_outside(const OutsideCounts::Found& found) const {
  if (!settings_.report || !settings_.report->wanted()) return;
  JsonList inputs;
  for (const OutsideInput& input : found.inputs) {
    Json row;
    row.add("name", input.name).add("calls", static_cast<double>(input.calls));
    row.add("least", static_cast<double>(input.range.least)).add("most", static_cast<double>(input.range.most));
    inputs.add(row.add("value", static_cast<double>(input.value)));
  }
  Json line;
  line.add("event", "outside").add("region", name()).add("looked", static_cast<double>(found.looked));
  line.add("calls", static_cast<double>(found.outside)).add_raw("inputs", inputs.str());
  settings_.report->write(line);
}

}  // namespace softneuro::ort
