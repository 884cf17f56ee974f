#include "providers/ort/abi/api.h"

#include <algorithm>
#include <cstdlib>

namespace softneuro::ort {
namespace {

Runtime attached;

}  // namespace

void Runtime::attach(const OrtApiBase* base, int floor) {
  const std::string version = base->version_string();
  // "1.31.1"; whatever else comes after major and minor does not matter.
  char* end = nullptr;
  const long major = std::strtol(version.c_str(), &end, 10);
  const int release = major == 1 && *end == '.' ? static_cast<int>(std::strtol(end + 1, nullptr, 10)) : 0;
  if (release < floor) {
    throw Error("this is ONNX Runtime " + version + "; softneuro needs 1." + std::to_string(floor) + " or later", {},
                "pip install --upgrade onnxruntime");
  }
  const int wanted = std::min(release, newest_api);
  const OrtApi* api = base->get_api(static_cast<uint32_t>(wanted));
  if (api == nullptr) throw Error("ONNX Runtime " + version + " has no API " + std::to_string(wanted));
  Runtime runtime;
  runtime.api_ = api;
  runtime.release_ = release;
  runtime.api_version_ = wanted;
  runtime.version_ = version;
  runtime.ep_api_ = runtime.function(fn::GetEpApi)();
  runtime.model_editor_api_ = runtime.function(fn::GetModelEditorApi)();
  if (attached.api_ != api) attached = runtime;
}

const Runtime& Runtime::get() {
  if (attached.api_ == nullptr) throw Error("no ONNX Runtime has loaded this library yet");
  return attached;
}

void Runtime::missing(const char* name, int since) {
  throw Error(std::string(name) + " is in ONNX Runtime from 1." + std::to_string(since) + " on, this is " +
              attached.version_);
}

void check(OrtStatus* status, const char* function) {
  if (status == nullptr) return;
  const Runtime& runtime = Runtime::get();
  const std::string message = runtime.function(fn::GetErrorMessage)(status);
  const int code = runtime.function(fn::GetErrorCode)(status);
  runtime.function(fn::ReleaseStatus)(status);
  if (code == ort_not_implemented) throw NotImplemented(message, function);
  throw Error(message, function);
}

}  // namespace softneuro::ort
