// Sessions of one process used by many threads at once, without Python: for thread sanitizers, which its interpreter
// does not bear, and as a test that results stay right. Arguments: libonnxruntime.so, libsoftneuro_ort.so, a model with
// an input x[n, 3, s, s] and an output y.
#include <dlfcn.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "providers/ort/abi/abi.h"

namespace {

using namespace softneuro::ort;

// Those that only a program calls.
constexpr Slot<OrtApi, OrtStatus*(const OrtEnv*, const char*, const OrtSessionOptions*, OrtSession**)> create_session{
    7, 0, "CreateSession"};
constexpr Slot<OrtApi, OrtStatus*(OrtEnv*, const char*, const char*)> register_library{
    301, 22, "RegisterExecutionProviderLibrary"};
constexpr Slot<OrtApi, OrtStatus*(OrtEnv*, const char*)> unregister_library{302, 22,
                                                                            "UnregisterExecutionProviderLibrary"};
constexpr Slot<OrtApi, OrtStatus*(const OrtEnv*, const OrtEpDevice* const**, size_t*)> get_devices{303, 22,
                                                                                                   "GetEpDevices"};
constexpr Slot<OrtApi, OrtStatus*(OrtSessionOptions*, OrtEnv*, const OrtEpDevice* const*, size_t, const char* const*,
                                  const char* const*, size_t)>
    append_provider{304, 22, "SessionOptionsAppendExecutionProvider_V2"};
constexpr Slot<OrtApi, const char*(const OrtEpDevice*)> device_name{312, 22, "EpDevice_EpName"};

const OrtApi* api = nullptr;

template <typename R, typename... P>
R call(const Slot<OrtApi, R(P...)>& slot, std::type_identity_t<P>... arguments) {
  return reinterpret_cast<R (*)(P...)>(reinterpret_cast<void* const*>(api)[slot.index])(arguments...);
}

template <typename... P>
void check(const Slot<OrtApi, OrtStatus*(P...)>& slot, std::type_identity_t<P>... arguments) {
  OrtStatus* status = call(slot, arguments...);
  if (status == nullptr) return;
  std::fprintf(stderr, "%s: %s\n", slot.name, call(fn::GetErrorMessage, status));
  std::exit(1);
}

struct Shape {
  int64_t n, s;
};
constexpr Shape shapes[] = {{1, 6}, {2, 7}, {3, 6}, {1, 9}, {2, 5}, {4, 7}};
constexpr size_t outputs_per_row = 5;

std::vector<float> run(OrtSession* session, const Shape& shape) {
  std::vector<float> data(static_cast<size_t>(shape.n * 3 * shape.s * shape.s));
  for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<float>(i % 17) / 8 - 1;
  const int64_t dims[] = {shape.n, 3, shape.s, shape.s};
  OrtMemoryInfo* memory = nullptr;
  OrtValue *x = nullptr, *y = nullptr;
  check(fn::CreateCpuMemoryInfo, allocator_device, memory_default, &memory);
  check(fn::CreateTensorWithDataAsOrtValue, memory, data.data(), data.size() * sizeof(float), dims, 4, 1, &x);
  const char *input = "x", *output = "y";
  check(fn::Run, session, nullptr, &input, &x, 1, &output, 1, &y);
  void* result = nullptr;
  check(fn::GetTensorMutableData, y, &result);
  const auto* from = static_cast<const float*>(result);
  std::vector<float> values(from, from + static_cast<size_t>(shape.n) * outputs_per_row);
  call(fn::ReleaseValue, x), call(fn::ReleaseValue, y), call(fn::ReleaseMemoryInfo, memory);
  return values;
}

struct Option {
  const char *name, *value;
};

OrtSession* make_session(OrtEnv* env, const OrtEpDevice* device, const char* model, const std::vector<Option>& given) {
  OrtSessionOptions* options = nullptr;
  check(fn::CreateSessionOptions, &options);
  check(fn::SetIntraOpNumThreads, options, 2);
  std::vector<const char*> names, values;
  for (const Option& option : given) names.push_back(option.name), values.push_back(option.value);
  if (device != nullptr) check(append_provider, options, env, &device, 1, names.data(), values.data(), names.size());
  OrtSession* session = nullptr;
  check(create_session, env, model, options, &session);
  call(fn::ReleaseSessionOptions, options);
  return session;
}

std::vector<std::vector<float>> expected;

void run_shapes(OrtSession* session, size_t first, int rounds) {
  for (int round = 0; round < rounds; ++round) {
    for (size_t i = 0; i < std::size(shapes); ++i) {
      const size_t at = (first + i) % std::size(shapes);
      const std::vector<float> values = run(session, shapes[at]);
      for (size_t k = 0; k < values.size(); ++k) {
        if (std::abs(values[k] - expected[at][k]) <= 1e-3F * (1 + std::abs(expected[at][k]))) continue;
        std::fprintf(stderr, "a result is %g, not %g\n", static_cast<double>(values[k]),
                     static_cast<double>(expected[at][k]));
        std::exit(1);
      }
    }
  }
}

template <typename Work>
void at_once(size_t count, const Work& work) {
  std::vector<std::thread> threads;
  for (size_t i = 0; i < count; ++i) threads.emplace_back([&work, i] { work(i); });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 4) return 2;
  void* library = ::dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return std::fprintf(stderr, "%s\n", ::dlerror()), 1;
  const auto base = reinterpret_cast<const OrtApiBase* (*)()>(::dlsym(library, "OrtGetApiBase"));
  api = base()->get_api(newest_api);
  const char* model = arguments[3];
  OrtEnv* env = nullptr;
  check(fn::CreateEnv, log_error_level, "concurrency", &env);
  check(register_library, env, "softneuro", arguments[2]);
  const OrtEpDevice* const* devices = nullptr;
  const OrtEpDevice* ours = nullptr;
  size_t found = 0;
  check(get_devices, env, &devices, &found);
  for (size_t i = 0; i < found; ++i) {
    if (std::strcmp(call(device_name, devices[i]), "SoftNeuroExecutionProvider") == 0) ours = devices[i];
  }
  if (ours == nullptr) return std::fprintf(stderr, "the provider has no device\n"), 1;

  OrtSession* cpu = make_session(env, nullptr, model, {});
  for (const Shape& shape : shapes) expected.push_back(run(cpu, shape));

  // One session, whose nets are prepared while others run.
  const std::vector<Option> untuned{{"tune", "off"}, {"min_region_size", "1"}};
  OrtSession* shared = make_session(env, ours, model, untuned);
  at_once(4, [&](size_t i) { run_shapes(shared, i, 5); });

  // Sessions that are made, tuned and judged, run and released at the same time, with one database.
  const std::vector<Option> tuned{{"time_budget_s", "0.05"}};
  at_once(4, [&](size_t i) {
    OrtSession* own = make_session(env, ours, model, i % 2 == 0 ? tuned : untuned);
    run_shapes(own, i, 1);
    call(fn::ReleaseSession, own);
    run_shapes(shared, i, 1);
  });
  call(fn::ReleaseSession, shared), call(fn::ReleaseSession, cpu);
  check(unregister_library, env, "softneuro");
  std::puts("right");
  return 0;
}
