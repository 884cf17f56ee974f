#include "tune/asked/pins.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/text.h"

namespace softneuro {
namespace {

std::string_view trimmed(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

int depth_change(char c) { return c == '{' || c == '[' || c == '(' ? 1 : c == '}' || c == ']' || c == ')' ? -1 : 0; }

// The last of a character outside of brackets.
size_t last_outside(std::string_view text, char wanted) {
  size_t found = std::string_view::npos;
  int depth = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    depth += depth_change(text[i]);
    if (depth == 0 && text[i] == wanted) found = i;
  }
  return found;
}

// Pieces between separators that are outside of brackets, trimmed.
std::vector<std::pair<char, std::string_view>> pieces(std::string_view text, std::string_view separators) {
  std::vector<std::pair<char, std::string_view>> found;  // with the separator before it
  char before = '\0';
  size_t begin = 0;
  int depth = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    if (i < text.size()) depth += depth_change(text[i]);
    const bool ends = i == text.size() || (depth <= 0 && separators.find(text[i]) != std::string_view::npos);
    if (!ends) continue;
    found.emplace_back(before, trimmed(text.substr(begin, i - begin)));
    if (i < text.size()) before = text[i];
    begin = i + 1;
  }
  return found;
}

bool is_form(std::string_view text) {
  try {
    if (text.find(':') == std::string_view::npos) {
      parse_dtype(text);
    } else {
      parse_schema(text);
    }
  } catch (const Error&) {
    return false;
  }
  return true;
}

Keep one_keep(std::string_view item) {
  // A schema has two colons in it, and a layer's name may have any number.
  size_t colon = item.rfind(':');
  if (colon != std::string_view::npos && !is_form(item.substr(colon + 1))) {
    for (int more = 0; more < 2 && colon != std::string_view::npos && colon > 0; ++more) {
      colon = item.rfind(':', colon - 1);
    }
  }
  if (colon == std::string_view::npos || colon == 0 || !is_form(trimmed(item.substr(colon + 1)))) {
    throw Error("'" + std::string(item) + "' is no pattern of names, a colon, and a dtype or a schema");
  }
  return {std::string(trimmed(item.substr(0, colon))), std::string(trimmed(item.substr(colon + 1)))};
}

Fixed one_fixed(std::string_view item) {
  const size_t equals = last_outside(item, '=');
  if (equals == std::string_view::npos || equals == 0 || equals + 1 == item.size()) {
    throw Error("'" + std::string(item) + "' is no pattern of names, '=', and a routine's descriptor");
  }
  Fixed fixed{.pattern = std::string(trimmed(item.substr(0, equals)))};
  const std::string text(trimmed(item.substr(equals + 1)));
  const std::string type = text.substr(0, text.find('/'));
  layer_def(type);  // throws for a type that there is not
  std::vector<std::string> known;
  for (const auto& routine : routines(type)) {
    known.push_back(routine->descriptor());
    if (known.back() == text) {
      fixed.routine = routine.get();
      return fixed;
    }
  }
  try {
    RoutineChoice choice = find_routine(text);
    fixed.routine = choice.routine;
    fixed.tuning = std::move(choice.tuning);
  } catch (const Error&) {
    const std::vector<std::string_view> names(known.begin(), known.end());
    const std::string nearest(nearest_name(text.substr(0, text.find('{')), names));
    throw Error("there is no routine '" + text + "'", {},
                nearest.empty() ? "softneuro.registry() lists them" : "did you mean '" + nearest + "'?");
  }
  return fixed;
}

}  // namespace

bool Keep::allows(const Schema& schema) const { return form == dtype_name(schema.dtype) || form == schema.str(); }

bool is_pattern(std::string_view text) { return text.find_first_of("*?") != std::string_view::npos; }

bool matches(std::string_view pattern, std::string_view name) {
  size_t p = 0, n = 0, star = std::string_view::npos, from = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++, from = n;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == name[n])) {
      ++p, ++n;
    } else if (star != std::string_view::npos) {
      p = star + 1, n = ++from;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

std::vector<Keep> parse_keep(std::string_view text) {
  std::vector<Keep> keep;
  if (trimmed(text).empty()) return keep;
  for (const auto& [before, item] : pieces(text, ",")) keep.push_back(one_keep(item));
  return keep;
}

std::string format_keep(const std::vector<Keep>& keep) {
  std::string text;
  for (const Keep& one : keep) text += (text.empty() ? "" : ",") + one.pattern + ":" + one.form;
  return text;
}

std::vector<Fixed> parse_fixed(std::string_view text) {
  std::vector<std::string> items;
  if (trimmed(text).empty()) return {};
  for (const auto& [before, piece] : pieces(text, ",;")) {
    // Schemas of several inputs have commas between them, but nothing that is assigned.
    if (before == ',' && last_outside(piece, '=') == std::string_view::npos && !items.empty()) {
      items.back() += "," + std::string(piece);
    } else {
      items.emplace_back(piece);
    }
  }
  std::vector<Fixed> fixed;
  for (const std::string& item : items) fixed.push_back(one_fixed(item));
  return fixed;
}

std::string format_fixed(const std::vector<Fixed>& fixed) {
  std::string text;
  for (const Fixed& one : fixed) text += (text.empty() ? "" : ";") + one.pattern + "=" + one.descriptor();
  return text;
}

Pins in_floats(Pins pins) {
  std::erase_if(pins.keep, [](const Keep& keep) {
    const bool schema = keep.form.find(':') != std::string::npos;
    return (schema ? parse_schema(keep.form).dtype : parse_dtype(keep.form)) == DType::qint8;
  });
  std::erase_if(pins.fixed, [](const Fixed& fixed) {
    const RoutineInfo& info = fixed.routine->info();
    const bool bytes = info.in.dtype == DType::qint8 || info.out.dtype == DType::qint8;
    return bytes || fixed.type() == "dynamic_linear" || fixed.type() == "linear_blocks";
  });
  return pins;
}

}  // namespace softneuro
