// The library's three entry points; nothing else is exported.
#include "base/error.h"
#include "providers/ort/abi/api.h"
#include "providers/ort/abi/status.h"
#include "providers/ort/custom_ops.h"
#include "providers/ort/ep_factory.h"

namespace {

using namespace softneuro::ort;

// A status of a runtime that was refused: the refusal itself has to be made through that runtime's own table.
OrtStatus* attach(const OrtApiBase* base, int floor) noexcept {
  try {
    Runtime::attach(base, floor);
    return nullptr;
  } catch (const std::exception& error) {
    const OrtApi* api = base->get_api(1);
    if (api == nullptr) return nullptr;
    using Create = OrtStatus* (*)(int, const char*);
    return reinterpret_cast<Create>(reinterpret_cast<void* const*>(api)[fn::CreateStatus.index])(ort_fail,
                                                                                                 error.what());
  }
}

}  // namespace

#define SN_EXPORT extern "C" __attribute__((visibility("default")))

SN_EXPORT OrtStatus* CreateEpFactories(const char*, const OrtApiBase* base, const OrtLogger* logger,
                                       OrtEpFactory** factories, size_t most, size_t* made) {
  *made = 0;
  if (OrtStatus* refused = attach(base, provider_floor)) return refused;
  return guarded("CreateEpFactories", [&] {
    if (most < 1) throw softneuro::Error("there is no room for a factory");
    factories[0] = make_factory(logger);
    *made = 1;
  });
}

SN_EXPORT OrtStatus* ReleaseEpFactory(OrtEpFactory* factory) {
  return guarded("ReleaseEpFactory", [&] { release_factory(factory); });
}

SN_EXPORT OrtStatus* RegisterCustomOps(OrtSessionOptions* options, const OrtApiBase* base) {
  if (OrtStatus* refused = attach(base, custom_op_floor)) return refused;
  return guarded("RegisterCustomOps", [&] { register_custom_ops(options); });
}
