// Means by channel become lines of text. Many channels need several lines.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tune/records/field_reader.h"

namespace softneuro {

inline constexpr size_t means_per_line = 1024;
inline constexpr size_t max_means_fields = means_per_line + 2;  // "mean" and the blob come first

std::string format_means(int blob, const std::vector<double>& values, const char* where);
// This appends a line's values. It fails for any that is no finite number.
void parse_means(const FieldReader& reader, const std::vector<std::string_view>& fields, std::vector<double>& values);

}  // namespace softneuro
