#include "tune/records/record_fields.h"

namespace softneuro {

bool parse_value(std::string_view text, double& value) {
  const auto number = parse_double(text);
  if (number) value = *number;
  return number.has_value();
}

bool parse_value(std::string_view text, int& value) {
  const auto number = parse_integer(text);
  const bool good = number && *number >= INT32_MIN && *number <= INT32_MAX;
  if (good) value = static_cast<int>(*number);
  return good;
}

FieldTexts::FieldTexts(std::string_view text) {
  while (count_ < most) {
    const size_t space = text.find(' ');
    const std::string_view field = text.substr(0, space);
    const size_t equals = field.find('=');
    if (equals == std::string_view::npos) return;
    fields_[count_++] = {field.substr(0, equals), field.substr(equals + 1)};
    if (space == std::string_view::npos) {
      complete_ = true;
      return;
    }
    text.remove_prefix(space + 1);
  }
}

const std::string_view* FieldTexts::find(std::string_view name) const {
  for (size_t i = 0; i < count_; ++i) {
    if (fields_[i].first == name) return &fields_[i].second;
  }
  return nullptr;
}

}  // namespace softneuro
