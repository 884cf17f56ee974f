#include "layers/contract/params.h"

#include "base/error.h"

namespace softneuro {

std::vector<std::string> param_names_of(std::string_view list) {
  std::vector<std::string> names;
  while (!list.empty()) {
    const size_t comma = list.find(',');
    names.emplace_back(list.substr(0, comma));
    if (comma == std::string_view::npos) break;
    list.remove_prefix(list.find_first_not_of(", ", comma));
  }
  return names;
}

void check_param_count(const Tuning& tuning, size_t count, std::string_view list) {
  if (tuning.size() == count) return;
  throw Error("a routine with the params " + std::string(list) + " was given " + std::to_string(tuning.size()) +
              " values");
}

bool parse_flag(std::string_view name, int value) {
  if (value != 0 && value != 1) throw Error(std::string(name) + " must be 0 or 1, not " + std::to_string(value));
  return value != 0;
}

int parse_positive(std::string_view name, int value) {
  if (value < 1) throw Error(std::string(name) + " must be positive, not " + std::to_string(value));
  return value;
}

int parse_within(std::string_view name, int value, int least, int most) {
  if (value >= least && value <= most) return value;
  throw Error(std::string(name) + " must be in [" + std::to_string(least) + ", " + std::to_string(most) + "], not " +
              std::to_string(value));
}

}  // namespace softneuro
