// The text form of one database line: tag, fields separated by single spaces, checksum.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace softneuro {

inline constexpr size_t max_cost_line = 64 * 1024;

// Key and value of a record as escaped fields: equal keys have equal texts.
struct CostLine {
  std::string key, value;
};

// With the newline.
std::string format_cost_line(const CostLine& line);
// Without the newline; nothing for anything that format_cost_line() cannot have written.
std::optional<CostLine> parse_cost_line(std::string_view text);

}  // namespace softneuro
