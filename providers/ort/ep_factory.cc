#include "providers/ort/ep_factory.h"

#include <atomic>
#include <cstdio>
#include <map>
#include <string>
#include <utility>

#include "base/log.h"
#include "base/version.h"
#include "providers/ort/abi/api.h"
#include "providers/ort/abi/status.h"
#include "providers/ort/ep.h"

namespace softneuro::ort {
namespace {

using Pairs = Owned<OrtKeyValuePairs, fn::ReleaseKeyValuePairs>;

const char* get_name(const OrtEpFactory*) { return provider_name; }
const char* get_vendor(const OrtEpFactory*) { return "softneuro"; }
uint32_t get_vendor_id(const OrtEpFactory*) { return 0; }
bool is_stream_aware(const OrtEpFactory*) { return false; }

const char* get_version(const OrtEpFactory*) {
  static const std::string version(library_version());
  return version.c_str();
}

OrtStatus* get_supported_devices(OrtEpFactory* factory, const OrtHardwareDevice* const* devices, size_t count,
                                 OrtEpDevice** ep_devices, size_t most, size_t* made) {
  return guarded("GetSupportedDevices", [&] {
    *made = 0;
    for (size_t i = 0; i < count && *made < most; ++i) {
      if (call(fn::HardwareDevice_Type, devices[i]) != device_cpu) continue;
      call(fn::CreateEpDevice, factory, devices[i], nullptr, nullptr, &ep_devices[*made]);
      ++*made;
    }
  });
}

OrtStatus* create_ep(OrtEpFactory*, const OrtHardwareDevice* const*, const OrtKeyValuePairs* const*, size_t,
                     const OrtSessionOptions* options, const OrtLogger*, OrtEp** ep) {
  return guarded("CreateEp", [&] {
    *ep = nullptr;
    const Pairs pairs = create<fn::ReleaseKeyValuePairs, OrtKeyValuePairs>(fn::GetSessionOptionsConfigEntries, options);
    const char* const* keys = nullptr;
    const char* const* values = nullptr;
    size_t count = 0;
    call(fn::GetKeyValuePairs, pairs.get(), &keys, &values, &count);
    std::map<std::string, std::string> entries;
    for (size_t i = 0; i < count; ++i) entries.emplace(keys[i], values[i]);
    RegionSettings settings = read_settings(entries);
    show_messages(settings.options.verbose);
    *ep = make_ep(std::move(settings), read_context_settings(entries), options);
  });
}

OrtStatus* validate_compatibility(OrtEpFactory*, const OrtHardwareDevice* const*, size_t, const char* info,
                                  int* verdict) {
  return guarded("ValidateCompatibility", [&] {
    *verdict = info == nullptr             ? compatibility_not_applicable
               : device_identity() == info ? compatibility_optimal
                                           : compatibility_recompile;
  });
}

OrtStatus* create_data_transfer(OrtEpFactory*, OrtDataTransferImpl** transfer) {
  *transfer = nullptr;  // the host's memory is ours
  return nullptr;
}

void release_ep_callback(OrtEpFactory*, OrtEp* ep) {
  guarded_quietly("ReleaseEp", [&] { release_ep(ep); });
}

// What option `verbose` of any session has asked for, at most.
std::atomic<int> loudness{0};

bool is_asked_for(LogLevel level) {
  if (level == LogLevel::warning) return false;  // the runtime shows these
  return loudness >= (level == LogLevel::info ? 1 : level == LogLevel::progress ? 2 : 3);
}

// The core's messages go where the runtime's go, which by default shows warnings alone.
void log_through(const OrtLogger* logger) {
  set_log_sink([logger](LogLevel level, const std::string& message) {
    if (is_asked_for(level)) {
      std::fprintf(stderr, "softneuro: %s\n", message.c_str());
      return;
    }
    const int severity = level == LogLevel::warning ? log_warning_level
                         : level == LogLevel::info  ? log_info_level
                                                    : log_verbose_level;
    call(fn::Logger_LogMessage, logger, severity, ("softneuro: " + message).c_str(), "softneuro", 0, "");
  });
}

}  // namespace

void show_messages(int verbose) {
  for (int known = loudness; known < verbose && !loudness.compare_exchange_weak(known, verbose);) {
  }
}

// The one factory lives as long as the process: sessions may outlive the registration of the library.
OrtEpFactory* make_factory(const OrtLogger* logger) {
  static OrtEpFactory factory;
  factory.version = Runtime::get().api_version();
  factory.get_name = get_name;
  factory.get_vendor = get_vendor;
  factory.get_vendor_id = get_vendor_id;
  factory.get_version = get_version;
  factory.is_stream_aware = is_stream_aware;
  factory.validate_compatibility = validate_compatibility;
  factory.create_data_transfer = create_data_transfer;
  factory.get_supported_devices = get_supported_devices;
  factory.create_ep = create_ep;
  factory.release_ep = release_ep_callback;
  if (logger != nullptr) log_through(logger);
  return &factory;
}

void release_factory(OrtEpFactory*) { set_log_sink({}); }

}  // namespace softneuro::ort
