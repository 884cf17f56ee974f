#include "tune/records/means_text.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/text.h"
#include "tune/records/record_text.h"

namespace softneuro {

std::string format_means(int blob, const std::vector<double>& values, const char* where) {
  std::string text;
  for (size_t begin = 0; begin < values.size(); begin += means_per_line) {
    const size_t first = text.size();
    text += "mean " + std::to_string(blob);
    for (size_t i = begin; i < std::min(values.size(), begin + means_per_line); ++i) {
      text += " " + exact_number(values[i]);
    }
    if (text.size() - first > FieldReader::max_line) throw Error("means are too long for a line", where);
    text += "\n";
  }
  return text;
}

void parse_means(const FieldReader& reader, const std::vector<std::string_view>& fields, std::vector<double>& values) {
  if (fields.size() < 3) reader.fail("'mean' has no values");
  for (size_t i = 2; i < fields.size(); ++i) {
    const auto value = parse_double(fields[i]);
    if (!value || !std::isfinite(*value)) reader.fail("a mean is not a finite number");
    values.push_back(*value);
  }
}

}  // namespace softneuro
