// How a routine declines: with a reason, or not at all.
#pragma once

#include <string>
#include <utility>

namespace softneuro {

class [[nodiscard]] Refusal {
 public:
  Refusal() = default;  // accepts
  Refusal(std::string reason) : reason_(std::move(reason)) {}
  Refusal(const char* reason) : reason_(reason) {}

  bool accepted() const { return reason_.empty(); }
  const std::string& reason() const { return reason_; }

 private:
  std::string reason_;
};

}  // namespace softneuro
