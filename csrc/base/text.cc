#include "base/text.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <utility>
#include <vector>

namespace softneuro {
namespace {

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t above = row[j];
      row[j] = std::min({above + 1, row[j - 1] + 1, diagonal + (a[i - 1] == b[j - 1] ? 0 : 1)});
      diagonal = above;
    }
  }
  return row[b.size()];
}

uint64_t mix(uint64_t x) {
  x ^= x >> 33;
  x *= 0xff51afd7ed558ccdULL;
  x ^= x >> 33;
  x *= 0xc4ceb9fe1a85ec53ULL;
  return x ^ (x >> 33);
}

}  // namespace

std::string_view nearest_name(std::string_view name, std::span<const std::string_view> candidates) {
  const auto nearest = nearest_names(name, candidates, 1);
  return nearest.empty() ? std::string_view() : nearest.front();
}

std::vector<std::string_view> nearest_names(std::string_view name, std::span<const std::string_view> candidates,
                                            size_t most) {
  const std::string_view clipped = name.substr(0, 64);  // a hostile name must not cost quadratic time
  std::vector<std::pair<size_t, std::string_view>> order;
  for (const std::string_view candidate : candidates) {
    const auto known =
        std::find_if(order.begin(), order.end(), [&](const auto& one) { return one.second == candidate; });
    if (known == order.end()) order.emplace_back(edit_distance(clipped, candidate), candidate);
  }
  std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::string_view> nearest;
  for (size_t i = 0; i < std::min(most, order.size()); ++i) nearest.push_back(order[i].second);
  return nearest;
}

std::string exact_number(double value) {
  char buffer[40];
  const auto result = std::to_chars(buffer, buffer + sizeof buffer, value);
  return {buffer, result.ptr};
}

std::string content_hash(std::string_view text) {
  uint64_t low = 0xcbf29ce484222325ULL, high = 0x9e3779b97f4a7c15ULL;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    low = (low ^ byte) * 0x100000001b3ULL;
    high = (high + byte + 1) * 0xd6e8feb86659fd93ULL;
    high ^= high >> 29;
  }
  char hex[33];
  std::snprintf(hex, sizeof hex, "%016llx%016llx", static_cast<unsigned long long>(mix(low)),
                static_cast<unsigned long long>(mix(high)));
  return hex;
}

}  // namespace softneuro
