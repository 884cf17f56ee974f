#include "tune/cost_line.h"

#include <algorithm>

#include "tune/record_text.h"

namespace softneuro {
namespace {

// Lines of other formats are measured again: their keys say less.
constexpr std::string_view tag = "sn2 ";
constexpr std::string_view separator = " = ";
constexpr std::string_view before_checksum = " #";

bool fields_valid(std::string_view text) {
  while (true) {
    const size_t space = text.find(' ');
    if (!unescape_field(text.substr(0, space))) return false;
    if (space == std::string_view::npos) return true;
    text.remove_prefix(space + 1);
  }
}

}  // namespace

std::string format_cost_line(const CostLine& line) {
  std::string text = std::string(tag) + line.key + std::string(separator) + line.value;
  text += std::string(before_checksum) + line_checksum(text);
  return text + "\n";
}

std::optional<CostLine> parse_cost_line(std::string_view text) {
  const size_t tail = before_checksum.size() + 16;
  if (text.size() >= max_cost_line || text.size() < tag.size() + tail || !text.starts_with(tag)) return std::nullopt;
  const std::string_view body = text.substr(0, text.size() - tail);
  if (text.substr(body.size()) != std::string(before_checksum) + line_checksum(body)) return std::nullopt;
  const size_t middle = body.rfind(separator);
  if (middle == std::string_view::npos || middle < tag.size()) return std::nullopt;
  const std::string_view key = body.substr(tag.size(), middle - tag.size());
  const std::string_view value = body.substr(middle + separator.size());
  if (!fields_valid(key) || !fields_valid(value)) return std::nullopt;
  return CostLine{std::string(key), std::string(value)};
}

}  // namespace softneuro
