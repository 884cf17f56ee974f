// What a region tells of itself.
#include "providers/ort/region.h"

namespace softneuro::ort {

std::string Region::shapes_text(std::span<const RunInput> inputs) {
  std::string text;
  for (const RunInput& input : inputs) {
    text += (text.empty() ? "" : ", ") + Shape(input.dims).str();
    if (input.type != DType::float32) text += " " + std::string(dtype_name(input.type));
  }
  return text;
}

void Region::report(std::span<const RunInput> inputs, const std::string& host, const Graph* graph,
                    const TuneResult* plan, const Verdict& verdict) const {
  if (!settings_.report || !settings_.report->wanted()) return;
  Json line;
  line.add("event", "prepared").add("region", name()).add("inputs", shapes_text(inputs)).add("host", host);
  line.add("threads", static_cast<double>(settings_.threads));
  if (graph != nullptr) line.add("graph_hash", graph->structural_hash());
  if (verdict.known) {
    line.add("seconds", verdict.seconds).add("host_seconds", verdict.host_seconds).add("error", verdict.error);
  }
  if (plan != nullptr) {
    JsonList layers;
    for (const LayerReport& layer : plan->layers) {
      Json row;
      row.add("name", layer.name).add("type", layer.type).add("descriptor", layer.descriptor);
      row.add("seconds", layer.seconds).add("regret", layer.regret);
      layers.add(row);
    }
    line.add("predicted_s", plan->predicted_s).add("lower_bound_s", plan->lower_bound_s);
    line.add("measured", plan->measured).add("recalled", plan->recalled).add("guessed", plan->guessed);
    line.add_raw("layers", layers.str());
  }
  settings_.report->write(line);
}

}  // namespace softneuro::ort
