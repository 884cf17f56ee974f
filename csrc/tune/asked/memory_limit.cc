#include "tune/asked/memory_limit.h"

#include <cmath>
#include <utility>

#include "base/text.h"
#include "tune/records/record_text.h"

namespace softneuro {
namespace {

// A unit comes before those that end like it.
constexpr std::pair<std::string_view, double> units[] = {
    {"KiB", 1024.0}, {"MiB", 1048576.0}, {"GiB", 1073741824.0}, {"TiB", 1099511627776.0},
    {"kB", 1e3},     {"KB", 1e3},        {"MB", 1e6},           {"GB", 1e9},
    {"TB", 1e12},    {"B", 1.0}};

}  // namespace

std::string MemoryLimit::str() const {
  if (unit == Unit::automatic) return "auto";
  return exact_number(amount) + (unit == Unit::bytes ? "B" : "x");
}

std::optional<MemoryLimit> parse_memory_limit(std::string_view text) {
  if (text == "auto") return MemoryLimit();
  MemoryLimit limit{.unit = MemoryLimit::Unit::weights, .amount = 0};
  double factor = 1;
  if (text.ends_with('x')) {
    text.remove_suffix(1);
  } else {
    for (const auto& [name, bytes] : units) {
      if (!text.ends_with(name)) continue;
      text.remove_suffix(name.size());
      limit.unit = MemoryLimit::Unit::bytes;
      factor = bytes;
      break;
    }
  }
  const auto number = parse_double(text);
  if (!number) return {};
  limit.amount = factor * *number;
  if (!std::isfinite(limit.amount) || limit.amount <= 0) return {};
  return limit;
}

}  // namespace softneuro
