#include "layers/routine.h"

namespace softneuro {

Schema Routine::input_schema(const Problem& problem, int input) const {
  const bool residual = problem.layer->post.residual && input + 1 == static_cast<int>(problem.in.size());
  return residual ? info_.out : info_.in;
}

size_t Routine::packed_bytes(const Problem& problem, const Tuning&) const {
  int64_t elements = 0;
  for (const auto& [role, value] : problem.layer->weights) elements += value->elements();
  return static_cast<size_t>(elements) * sizeof(float);
}

std::string Routine::pack_key(const Problem&, const Tuning& tuning) const {
  std::string key;
  for (const int value : tuning) key += std::to_string(value) + ",";
  return key;
}

std::string Routine::descriptor(const Tuning& tuning) const {
  std::string text = info_.layer_type + "/" + info_.in.str();
  if (info_.out.layout != info_.in.layout) text += "->" + info_.out.layout.str();
  text += "/" + info_.algorithm;
  if (info_.isa_in_name) text += "_" + std::string(isa_name(info_.isa));
  const auto names = param_names();
  for (size_t i = 0; i < names.size() && i < tuning.size(); ++i) {
    text += (i == 0 ? "{" : ",") + names[i] + "=" + std::to_string(tuning[i]);
    if (i + 1 == names.size()) text += "}";
  }
  return text;
}

}  // namespace softneuro
