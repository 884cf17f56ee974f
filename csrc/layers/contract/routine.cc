#include "layers/contract/routine.h"

#include "base/version.h"

namespace softneuro {

Schema Routine::input_schema(const Problem& problem, int input) const {
  const bool residual = problem.layer->post.residual && input + 1 == static_cast<int>(problem.in.size());
  if (residual) return info_.residual.value_or(info_.out);
  const bool other = input > 0 && static_cast<size_t>(input) <= info_.others.size();
  return other ? info_.others[static_cast<size_t>(input) - 1] : info_.in;
}

std::vector<Schema> Routine::input_schemas(const Problem& problem) const {
  std::vector<Schema> schemas;
  for (int i = 0; i < static_cast<int>(problem.in.size()); ++i) schemas.push_back(input_schema(problem, i));
  return schemas;
}

std::vector<Schema> Routine::output_schemas(const Problem& problem) const {
  std::vector<Schema> schemas;
  for (int k = 0; k < static_cast<int>(problem.outs.size()); ++k) schemas.push_back(output_schema(problem, k));
  return schemas;
}

Strides Routine::view_strides(const Problem& problem, const Strides&) const {
  return dense_strides(problem.out().shape, info_.out.layout);
}

std::shared_ptr<const Packed> Routine::packed(const Problem& problem, const Tuning& tuning) const {
  Packing declared = packing(problem, tuning);
  if (declared.empty()) return nullptr;
  auto made = std::make_shared<Packed>(std::move(declared));
  pack(problem, tuning, *made);
  return made;
}

std::string Routine::pack_key(const Problem&, const Tuning& tuning) const {
  std::string key;
  for (const int value : tuning) key += std::to_string(value) + ",";
  return key;
}

std::string Routine::descriptor(const Tuning& tuning) const {
  std::string text = info_.layer_type + "/" + info_.in.str();
  for (const Schema& schema : info_.others) text += "," + schema.str();
  if (info_.residual && *info_.residual != info_.out) text += "+" + info_.residual->str();
  if (info_.out != info_.in) text += "->" + info_.out.str();
  text += "/" + info_.algorithm;
  if (info_.isa_in_name) text += "_" + std::string(isa_name(info_.isa));
  const auto names = param_names();
  for (size_t i = 0; i < names.size() && i < tuning.size(); ++i) {
    text += (i == 0 ? "{" : ",") + names[i] + "=" + std::to_string(tuning[i]);
    if (i + 1 == names.size()) text += "}";
  }
  return text;
}

void RoutineList::begin(std::string_view function) { sources_ = routine_sources(function); }

}  // namespace softneuro
