// Nothing thrown leaves a callback: an exception in the runtime's frames would end the process.
#pragma once

#include <exception>
#include <new>
#include <string>
#include <utility>

#include "base/log.h"
#include "providers/ort/abi/api.h"

namespace softneuro::ort {

// Null if there is no runtime to make it.
OrtStatus* make_status(int code, const char* message) noexcept;

// A place where tests make callbacks throw, by its name in SOFTNEURO_ORT_FAIL (a comma list): an error, or with
// ":memory" or ":unknown" after the name what allocations throw, or something that is no exception. With ":again" the
// first call of the place passes.
void injected_failure(const char* place);

// Runs a callback's body; what it throws becomes a status. The code is never ORT_EP_FAIL, at which Python would quietly
// run the model again on another provider.
template <typename Body>
OrtStatus* guarded(const char* place, Body&& body) noexcept {
  try {
    injected_failure(place);
    std::forward<Body>(body)();
    return nullptr;
  } catch (const std::bad_alloc&) {
    return make_status(ort_fail, "softneuro: out of memory");
  } catch (const std::exception& error) {
    try {
      return make_status(ort_fail, (std::string("softneuro: ") + error.what()).c_str());
    } catch (...) {
      return make_status(ort_fail, error.what());
    }
  } catch (...) {
    return make_status(ort_fail, "softneuro: unknown error");
  }
}

// The same for callbacks that cannot fail.
template <typename Body>
void guarded_quietly(const char* place, Body&& body) noexcept {
  try {
    injected_failure(place);
    std::forward<Body>(body)();
  } catch (const std::exception& error) {
    try {
      log_warning(std::string(place) + ": " + error.what());
    } catch (...) {
    }
  } catch (...) {
  }
}

}  // namespace softneuro::ort
