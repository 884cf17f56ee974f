#include "providers/ort/status.h"

#include <cstdlib>
#include <stdexcept>
#include <string_view>

namespace softneuro::ort {

OrtStatus* make_status(int code, const char* message) noexcept {
  try {
    return Runtime::get().function(fn::CreateStatus)(code, message);
  } catch (...) {
    return nullptr;
  }
}

void injected_failure(const char* place) {
  static const std::string places = [] {
    const char* text = std::getenv("SOFTNEURO_ORT_FAIL");
    return text == nullptr ? std::string() : "," + std::string(text) + ",";
  }();
  if (places.empty()) return;
  if (places.find("," + std::string(place) + ",") != std::string::npos) {
    throw std::runtime_error(std::string("failure injected into ") + place);
  }
}

}  // namespace softneuro::ort
