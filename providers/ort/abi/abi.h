// ONNX Runtime's C ABI, as far as it is used: the runtime's headers are in no package, so these declarations are our
// own. Its tables of functions only ever grow at their end, so a function is known by table and slot; a struct that a
// plugin fills in is known by its fields' offsets. Integer types stand for the runtime's enums.
#pragma once

#include <cstddef>
#include <cstdint>

namespace softneuro::ort {

constexpr int newest_api = 24;       // that the structs below are declared for; stamped into each
constexpr int provider_floor = 25;   // 1.25: the first release whose plugin providers work as we need them
constexpr int custom_op_floor = 22;  // 1.22: custom ops
constexpr int model_editor_floor = 22;

enum : int { ort_fail = 1, ort_invalid_argument = 2, ort_not_implemented = 9, ort_invalid_graph = 10 };
enum : int {
  log_verbose_level = 0,
  log_info_level = 1,
  log_warning_level = 2,
  log_error_level = 3,
  log_fatal_level = 4
};
enum : int { attr_int = 1, attr_ints, attr_float, attr_floats, attr_string, attr_strings, attr_graph, attr_tensor };
enum : int { compatibility_not_applicable = 0, compatibility_optimal = 1, compatibility_recompile = 2 };
enum : int { device_cpu = 0 };
enum : int { allocator_device = 0, memory_default = 0, type_tensor = 1 };

// Opaque.
struct OrtStatus;
struct OrtEnv;
struct OrtSession;
struct OrtSessionOptions;
struct OrtRunOptions;
struct OrtValue;
struct OrtMemoryInfo;
struct OrtTypeInfo;
struct OrtTensorTypeAndShapeInfo;
struct OrtKernelContext;
struct OrtKernelInfo;
struct OrtKeyValuePairs;
struct OrtLogger;
struct OrtHardwareDevice;
struct OrtEpDevice;
struct OrtValueInfo;
struct OrtNode;
struct OrtGraph;
struct OrtModel;
struct OrtOpAttr;
struct OrtEpGraphSupportInfo;
struct OrtNodeComputeContext;
struct OrtCustomOpDomain;
struct OrtShapeInferContext;
struct OrtMemoryDevice;
struct OrtAllocator;
struct OrtSyncStreamImpl;
struct OrtDataTransferImpl;
struct OrtKernelRegistry;

struct OrtCustomOp;
struct OrtNodeFusionOptions;
struct OrtEpFactory;
struct OrtApi;
struct OrtEpApi;
struct OrtModelEditorApi;

struct OrtApiBase {
  const OrtApi* (*get_api)(uint32_t version);
  const char* (*version_string)();
};

// A function's place in a table, with its type. `since`: minor version of the release that added it.
template <typename Table, typename Function>
struct Slot {
  int index, since;
  const char* name;
};

namespace fn {
#define SN_SLOT(table, name, index, since, result, ...) \
  inline constexpr Slot<table, result(__VA_ARGS__)> name{index, since, #name};
#include "providers/ort/abi/abi_slots.inc"
#undef SN_SLOT
}  // namespace fn

// What a plugin implements. Only the fields that are set have a type; the rest keeps its place.
using Unused = const void*;

struct OrtEpFactory {
  uint32_t version = 0;
  const char* (*get_name)(const OrtEpFactory*) = nullptr;
  const char* (*get_vendor)(const OrtEpFactory*) = nullptr;
  OrtStatus* (*get_supported_devices)(OrtEpFactory*, const OrtHardwareDevice* const*, size_t, OrtEpDevice**, size_t,
                                      size_t*) = nullptr;
  OrtStatus* (*create_ep)(OrtEpFactory*, const OrtHardwareDevice* const*, const OrtKeyValuePairs* const*, size_t,
                          const OrtSessionOptions*, const OrtLogger*, struct OrtEp**) = nullptr;
  void (*release_ep)(OrtEpFactory*, struct OrtEp*) = nullptr;
  uint32_t (*get_vendor_id)(const OrtEpFactory*) = nullptr;
  const char* (*get_version)(const OrtEpFactory*) = nullptr;
  OrtStatus* (*validate_compatibility)(OrtEpFactory*, const OrtHardwareDevice* const*, size_t, const char*,
                                       int*) = nullptr;
  Unused create_allocator = nullptr;
  Unused release_allocator = nullptr;
  OrtStatus* (*create_data_transfer)(OrtEpFactory*, OrtDataTransferImpl**) = nullptr;  // not optional
  bool (*is_stream_aware)(const OrtEpFactory*) = nullptr;
  Unused create_sync_stream = nullptr;
  Unused get_incompatibility_details = nullptr;
  Unused create_external_resource_importer = nullptr;
  Unused get_num_custom_op_domains = nullptr;
  Unused get_custom_op_domains = nullptr;
  Unused tail[16] = {};  // fields of newer releases
};
static_assert(offsetof(OrtEpFactory, get_name) == 8);
static_assert(offsetof(OrtEpFactory, get_supported_devices) == 24);
static_assert(offsetof(OrtEpFactory, create_ep) == 32);
static_assert(offsetof(OrtEpFactory, release_ep) == 40);
static_assert(offsetof(OrtEpFactory, get_vendor_id) == 48);
static_assert(offsetof(OrtEpFactory, get_version) == 56);
static_assert(offsetof(OrtEpFactory, validate_compatibility) == 64);
static_assert(offsetof(OrtEpFactory, create_data_transfer) == 88);
static_assert(offsetof(OrtEpFactory, is_stream_aware) == 96);
static_assert(offsetof(OrtEpFactory, get_custom_op_domains) == 136);

struct OrtNodeComputeInfo {
  uint32_t version = 0;
  OrtStatus* (*create_state)(OrtNodeComputeInfo*, OrtNodeComputeContext*, void**) = nullptr;
  OrtStatus* (*compute)(OrtNodeComputeInfo*, void*, OrtKernelContext*) = nullptr;
  void (*release_state)(OrtNodeComputeInfo*, void*) = nullptr;
  Unused tail[8] = {};
};
static_assert(offsetof(OrtNodeComputeInfo, create_state) == 8);
static_assert(offsetof(OrtNodeComputeInfo, compute) == 16);
static_assert(offsetof(OrtNodeComputeInfo, release_state) == 24);

struct OrtNodeFusionOptions {
  uint32_t version = 0;
  bool drop_constant_initializers = false;
  Unused tail[8] = {};
};
static_assert(offsetof(OrtNodeFusionOptions, drop_constant_initializers) == 4);

struct OrtEp {
  uint32_t version = 0;
  const char* (*get_name)(const OrtEp*) = nullptr;
  OrtStatus* (*get_capability)(OrtEp*, const OrtGraph*, OrtEpGraphSupportInfo*) = nullptr;
  OrtStatus* (*compile)(OrtEp*, const OrtGraph**, const OrtNode**, size_t, OrtNodeComputeInfo**, OrtNode**) = nullptr;
  void (*release_node_compute_infos)(OrtEp*, OrtNodeComputeInfo**, size_t) = nullptr;
  Unused get_preferred_data_layout = nullptr;
  Unused should_convert_data_layout = nullptr;
  Unused set_dynamic_options = nullptr;
  Unused on_run_start = nullptr;
  Unused on_run_end = nullptr;
  Unused create_allocator = nullptr;
  Unused create_sync_stream = nullptr;
  const char* (*get_compatibility_info)(OrtEp*, const OrtGraph*) = nullptr;
  Unused get_kernel_registry = nullptr;
  OrtStatus* (*is_concurrent_run_supported)(OrtEp*, bool*) = nullptr;
  Unused tail[24] = {};
};
static_assert(offsetof(OrtEp, get_name) == 8);
static_assert(offsetof(OrtEp, get_capability) == 16);
static_assert(offsetof(OrtEp, compile) == 24);
static_assert(offsetof(OrtEp, release_node_compute_infos) == 32);
static_assert(offsetof(OrtEp, get_compatibility_info) == 96);
static_assert(offsetof(OrtEp, is_concurrent_run_supported) == 112);

struct OrtCustomOp {
  uint32_t version = 0;
  Unused create_kernel = nullptr;
  const char* (*get_name)(const OrtCustomOp*) = nullptr;
  const char* (*get_execution_provider)(const OrtCustomOp*) = nullptr;
  int (*get_input_type)(const OrtCustomOp*, size_t) = nullptr;
  size_t (*get_input_count)(const OrtCustomOp*) = nullptr;
  int (*get_output_type)(const OrtCustomOp*, size_t) = nullptr;
  size_t (*get_output_count)(const OrtCustomOp*) = nullptr;
  Unused kernel_compute = nullptr;
  void (*kernel_destroy)(void*) = nullptr;
  int (*get_input_characteristic)(const OrtCustomOp*, size_t) = nullptr;
  int (*get_output_characteristic)(const OrtCustomOp*, size_t) = nullptr;
  int (*get_input_memory_type)(const OrtCustomOp*, size_t) = nullptr;
  int (*get_variadic_input_min_arity)(const OrtCustomOp*) = nullptr;
  int (*get_variadic_input_homogeneity)(const OrtCustomOp*) = nullptr;
  int (*get_variadic_output_min_arity)(const OrtCustomOp*) = nullptr;
  int (*get_variadic_output_homogeneity)(const OrtCustomOp*) = nullptr;
  OrtStatus* (*create_kernel_v2)(const OrtCustomOp*, const OrtApi*, const OrtKernelInfo*, void**) = nullptr;
  OrtStatus* (*kernel_compute_v2)(void*, OrtKernelContext*) = nullptr;
  OrtStatus* (*infer_output_shape)(const OrtCustomOp*, OrtShapeInferContext*) = nullptr;
  int (*get_start_version)(const OrtCustomOp*) = nullptr;
  int (*get_end_version)(const OrtCustomOp*) = nullptr;
  Unused get_may_inplace = nullptr;
  Unused release_may_inplace = nullptr;
  Unused get_alias_map = nullptr;
  Unused release_alias_map = nullptr;
  Unused tail[8] = {};
};
static_assert(offsetof(OrtCustomOp, get_name) == 16);
static_assert(offsetof(OrtCustomOp, kernel_destroy) == 72);
static_assert(offsetof(OrtCustomOp, get_input_characteristic) == 80);
static_assert(offsetof(OrtCustomOp, create_kernel_v2) == 136);
static_assert(offsetof(OrtCustomOp, kernel_compute_v2) == 144);
static_assert(offsetof(OrtCustomOp, infer_output_shape) == 152);
static_assert(offsetof(OrtCustomOp, get_end_version) == 168);
static_assert(offsetof(OrtCustomOp, release_alias_map) == 200);

}  // namespace softneuro::ort
