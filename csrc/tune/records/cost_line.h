// The text form of one database line: tag, kind, key, " = ", fields, checksum.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tune/records/cost_db.h"

namespace softneuro {

inline constexpr size_t max_cost_line = 64 * 1024;

// Kind and key as one text: equal keys of one kind have equal texts.
std::string cost_key_text(std::string_view kind, const CostKey& key);
// Nothing for a kind that this version does not know, or for what cost_key_text() cannot have made.
struct CostKeyParts {
  std::string kind;
  CostKey key;
};
std::optional<CostKeyParts> parse_cost_key(std::string_view text);

// The checksum has 16 hex digits and covers all that is before it and its space.
std::string cost_line_checksum(std::string_view text);
// With the newline. `key` begins with the kind; `value` is a record's text.
std::string format_cost_line(std::string_view key, std::string_view value);

enum class LineKind {
  record,   // of a kind that this version knows, or that a later one may
  old,      // of a format before this one
  damaged,  // anything that format_cost_line() cannot have written, or fields that no record has
};
struct CostLine {
  LineKind kind = LineKind::damaged;
  std::string_view key = {}, value = {};  // parts of the text
};
// Without the newline.
CostLine parse_cost_line(std::string_view text);

}  // namespace softneuro
