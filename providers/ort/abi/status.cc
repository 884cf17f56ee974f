#include "providers/ort/abi/status.h"

#include <atomic>
#include <cstdlib>
#include <new>
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
  const auto wanted = [&](const char* kind) {
    return places.find("," + std::string(place) + kind + ",") != std::string::npos;
  };
  if (wanted("")) throw std::runtime_error(std::string("failure injected into ") + place);
  if (wanted(":memory")) throw std::bad_alloc();
  if (wanted(":unknown")) throw 1;
  static std::atomic<int> calls{0};
  if (wanted(":again") && calls++ > 0) throw std::runtime_error(std::string("failure injected into ") + place);
}

}  // namespace softneuro::ort
