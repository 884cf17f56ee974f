#include "tune/records/field_reader.h"

#include <cmath>
#include <utility>

#include "base/error.h"
#include "tune/records/record_text.h"

namespace softneuro {

std::vector<std::string_view> FieldReader::next(size_t most) {
  ++number_;
  const size_t end = text_.find('\n');
  if (end == std::string_view::npos) fail(text_.empty() ? "the file ends too early" : "the last line is torn");
  if (end > max_line) fail("the line is longer than " + std::to_string(max_line) + " characters");
  std::string_view line = text_.substr(0, end);
  text_.remove_prefix(end + 1);
  std::vector<std::string_view> fields;
  while (true) {
    if (fields.size() == most) fail("too many fields");
    const size_t space = line.find(' ');
    fields.push_back(line.substr(0, space));
    if (space == std::string_view::npos) return fields;
    line.remove_prefix(space + 1);
  }
}

void FieldReader::fail(const std::string& what) const {
  throw Error(what, where_ + ", line " + std::to_string(number_), remedy_);
}

void FieldReader::expect(const std::vector<std::string_view>& fields, std::string_view name, size_t count) const {
  if (fields[0] != name) fail("expected '" + std::string(name) + "'");
  if (fields.size() != count) {
    fail("'" + std::string(name) + "' has " + std::to_string(fields.size() - 1) + " values, not " +
         std::to_string(count - 1));
  }
}

std::string FieldReader::text(std::string_view field) const {
  auto value = unescape_field(field);
  if (!value) fail("a text is not escaped as it should be");
  return std::move(*value);
}

int FieldReader::index(std::string_view field) const {
  const auto value = parse_integer(field);
  if (!value || *value < 0 || *value > max_index) fail("an index is not a number from 0 to 10000000");
  return static_cast<int>(*value);
}

int64_t FieldReader::count(std::string_view field) const {
  const auto value = parse_integer(field);
  if (!value || *value < 0) fail("a count is not a whole number from 0 on");
  return *value;
}

double FieldReader::amount(std::string_view field, const char* what) const {
  const auto value = parse_double(field);
  if (!value || !std::isfinite(*value) || *value < 0) fail(what);
  return *value;
}

std::string line_of_fields(std::initializer_list<std::string> fields, const char* where) {
  std::string text;
  for (const std::string& field : fields) text += (text.empty() ? "" : " ") + field;
  if (text.size() > FieldReader::max_line) throw Error("a line would be longer than such a file allows", where);
  return text + "\n";
}

}  // namespace softneuro
