// The option max_memory.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace softneuro {

// What a run may have beside the model's own weights (NetStats::peak_bytes()). `automatic`: no bound on that, and
// packed weights of at most four times the model's, which no user would want to exceed for a little speed.
struct MemoryLimit {
  enum class Unit : unsigned char { automatic, weights, bytes };
  Unit unit = Unit::automatic;
  double amount = 4;  // bytes, or a multiple of the weights as float32

  bool bounds_peak() const { return unit != Unit::automatic; }
  double bytes(double weight_bytes) const { return unit == Unit::bytes ? amount : amount * weight_bytes; }
  std::string str() const;
};

// "auto"; "1.5" or "1.5x"; "120MiB" and other units. Nothing for any other text, or for nothing and less.
std::optional<MemoryLimit> parse_memory_limit(std::string_view text);

}  // namespace softneuro
