// Calls into the runtime: typed by slot, errors as exceptions, objects with owners.
#pragma once

#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include "base/error.h"
#include "providers/ort/abi/abi.h"

namespace softneuro::ort {

// The runtime that has loaded this library.
class Runtime {
 public:
  // Throws Error if the release is older than 1.`floor`, naming both.
  static void attach(const OrtApiBase* base, int floor);
  static const Runtime& get();

  int release() const { return release_; }  // minor version: 31 of 1.31.1
  const std::string& version() const { return version_; }
  uint32_t api_version() const { return static_cast<uint32_t>(api_version_); }  // to stamp into structs
  const OrtApi* api() const { return api_; }

  template <typename Table, typename Function>
  Function* function(Slot<Table, Function> slot) const {
    if (slot.since > release_) missing(slot.name, slot.since);
    return reinterpret_cast<Function*>(reinterpret_cast<void* const*>(table<Table>())[slot.index]);
  }

 private:
  template <typename Table>
  const Table* table() const {
    if constexpr (std::is_same_v<Table, OrtApi>) return api_;
    if constexpr (std::is_same_v<Table, OrtEpApi>) return ep_api_;
    if constexpr (std::is_same_v<Table, OrtModelEditorApi>) return model_editor_api_;
  }
  [[noreturn]] static void missing(const char* name, int since);

  const OrtApi* api_ = nullptr;
  const OrtEpApi* ep_api_ = nullptr;
  const OrtModelEditorApi* model_editor_api_ = nullptr;
  int release_ = 0, api_version_ = 0;
  std::string version_;
};

// The runtime has no kernel for an op with these types.
struct NotImplemented : Error {
  using Error::Error;
};

// Throws Error with the runtime's message, and releases the status.
void check(OrtStatus* status, const char* function);

// Calls a function of the runtime. Its status is checked, any other result returned.
template <typename Table, typename R, typename... P, typename... A>
auto call(Slot<Table, R(P...)> slot, A&&... arguments) {
  if constexpr (std::is_same_v<R, OrtStatus*>) {
    check(Runtime::get().function(slot)(static_cast<P>(arguments)...), slot.name);
  } else {
    return Runtime::get().function(slot)(static_cast<P>(arguments)...);
  }
}

// An object that is to be released by `slot`.
template <const auto& slot, typename T>
struct Release {
  void operator()(T* object) const { call(slot, object); }
};
template <typename T, const auto& slot>
using Owned = std::unique_ptr<T, Release<slot, T>>;

// call() of a function whose last parameter receives an object to own: create<fn::ReleaseX, X>(fn::CreateX, ...).
template <const auto& release, typename T, typename S, typename... A>
Owned<T, release> create(S slot, A&&... arguments) {
  T* made = nullptr;
  call(slot, std::forward<A>(arguments)..., &made);
  return Owned<T, release>(made);
}

// The last parameter's value: get<int>(fn::GetTensorElementType, info).
template <typename T, typename S, typename... A>
T get(S slot, A&&... arguments) {
  T value{};
  call(slot, std::forward<A>(arguments)..., &value);
  return value;
}

}  // namespace softneuro::ort
