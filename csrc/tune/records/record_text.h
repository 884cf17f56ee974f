// How the text files of tuning keep arbitrary strings on one line, and lines trustworthy.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace softneuro {

// Reversible: printable ASCII other than '%' and spaces stays, everything else becomes %XX; an empty text is "%".
std::string escape_field(std::string_view text);
// Nothing for what escape_field() cannot have made.
std::optional<std::string> unescape_field(std::string_view text);
// Whether it is what escape_field() can have made. Allocates nothing.
bool is_escaped_field(std::string_view text);

// The whole text must be a number. Never throws.
std::optional<double> parse_double(std::string_view text);
std::optional<int64_t> parse_integer(std::string_view text);

}  // namespace softneuro
