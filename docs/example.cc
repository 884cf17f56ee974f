// A model through softneuro, from C++ without Python:
//
//   g++ -std=c++17 example.cc -I<onnxruntime>/include -L<onnxruntime>/lib -lonnxruntime -o example
//   ./example libsoftneuro_ort.so model.onnx 1 3 224 224
//
// The library is softneuro.providers.get_library_path(); it needs nothing of this package at run time.
#include <onnxruntime_c_api.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

namespace {

const OrtApi* ort = nullptr;

void check(OrtStatus* status) {
  if (status == nullptr) return;
  std::fprintf(stderr, "%s\n", ort->GetErrorMessage(status));
  ort->ReleaseStatus(status);
  std::exit(1);
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 4) {
    std::fprintf(stderr, "usage: %s libsoftneuro_ort.so model.onnx dimension...\n", arguments[0]);
    return 2;
  }
  ort = OrtGetApiBase()->GetApi(ORT_API_VERSION);
  if (ort == nullptr) return 1;
  OrtEnv* env = nullptr;
  OrtSessionOptions* options = nullptr;
  check(ort->CreateEnv(ORT_LOGGING_LEVEL_WARNING, "example", &env));
  check(ort->CreateSessionOptions(&options));

  // 1. Register the library; its provider is then a device of the runtime.
  check(ort->RegisterExecutionProviderLibrary(env, "softneuro", arguments[1]));
  const OrtEpDevice* const* devices = nullptr;
  size_t found = 0;
  check(ort->GetEpDevices(env, &devices, &found));
  const OrtEpDevice* ours = nullptr;
  for (size_t i = 0; i < found; ++i) {
    if (std::strcmp(ort->EpDevice_EpName(devices[i]), "SoftNeuroExecutionProvider") == 0) ours = devices[i];
  }
  if (ours == nullptr) return 1;

  // 2. Put it first. What it does not take, or not faster, runs on the CPU provider.
  const char* names[] = {"time_budget_s"};
  const char* values[] = {"10"};
  check(ort->SessionOptionsAppendExecutionProvider_V2(options, env, &ours, 1, names, values, 1));

  OrtSession* session = nullptr;
  check(ort->CreateSession(env, arguments[2], options, &session));

  // From here on as with any provider: an input x, an output y.
  std::vector<int64_t> shape;
  for (int i = 3; i < count; ++i) shape.push_back(std::atoll(arguments[i]));
  const auto elements =
      static_cast<size_t>(std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<int64_t>()));
  std::vector<float> data(elements, 1.0F);
  OrtMemoryInfo* memory = nullptr;
  OrtValue *x = nullptr, *y = nullptr;
  check(ort->CreateCpuMemoryInfo(OrtDeviceAllocator, OrtMemTypeDefault, &memory));
  check(ort->CreateTensorWithDataAsOrtValue(memory, data.data(), elements * sizeof(float), shape.data(), shape.size(),
                                            ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &x));
  const char* inputs[] = {"x"};
  const char* outputs[] = {"y"};
  check(ort->Run(session, nullptr, inputs, &x, 1, outputs, 1, &y));
  OrtTensorTypeAndShapeInfo* info = nullptr;
  size_t size = 0;
  float* result = nullptr;
  check(ort->GetTensorTypeAndShape(y, &info));
  check(ort->GetTensorShapeElementCount(info, &size));
  check(ort->GetTensorMutableData(y, reinterpret_cast<void**>(&result)));
  for (size_t i = 0; i < size; ++i) std::printf("%.6g\n", static_cast<double>(result[i]));

  ort->ReleaseTensorTypeAndShapeInfo(info);
  ort->ReleaseValue(y);
  ort->ReleaseValue(x);
  ort->ReleaseMemoryInfo(memory);
  ort->ReleaseSession(session);
  ort->ReleaseSessionOptions(options);
  ort->ReleaseEnv(env);
}
