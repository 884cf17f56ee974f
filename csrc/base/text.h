// Small text helpers for messages and signatures.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace softneuro {

// The candidate with the smallest edit distance, for "did you mean"; empty if there are none.
std::string_view nearest_name(std::string_view name, std::span<const std::string_view> candidates);
// Distinct candidates, the nearest first: `most` of them, or all if there are fewer.
std::vector<std::string_view> nearest_names(std::string_view name, std::span<const std::string_view> candidates,
                                            size_t most);

// Shortest text that reads back as the same double.
std::string exact_number(double value);

// 128-bit content hash (two independent 64-bit FNV-1a style passes with final mixing), as 32 hex digits.
std::string content_hash(std::string_view text);

}  // namespace softneuro
