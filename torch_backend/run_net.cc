#include "torch_backend/run_net.h"

#include <torch/csrc/stable/ops.h>

#include <algorithm>
#include <string>
#include <vector>

namespace softneuro {
namespace {

// Torch's intra-op pool as the core's ParallelFor.
class TorchPool {
 public:
  explicit TorchPool(int threads) : threads_(threads) {}
  ParallelFor parallel_for() { return {&run, this, threads_}; }

 private:
  static void run(void*, int64_t tasks, ParallelFor::Task task, void* arg) {
    torch::stable::parallel_for(0, tasks, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) task(arg, i);
    });
  }

  int threads_;
};

}  // namespace

int32_t torch_dtype(DType dtype) {
  switch (dtype) {
    case DType::int64:
      return aoti_torch_dtype_int64();
    case DType::int32:
      return aoti_torch_dtype_int32();
    case DType::int8:
      return aoti_torch_dtype_int8();
    case DType::uint8:
      return aoti_torch_dtype_uint8();
    case DType::boolean:
      return aoti_torch_dtype_bool();
    default:
      return aoti_torch_dtype_float32();
  }
}

ProfilerRange::ProfilerRange(std::string_view region) {
  const std::string name = "softneuro::" + std::string(region);
  if (aoti_record_function_start(name.c_str(), nullptr, nullptr, 0, &handle_) != 0) handle_ = nullptr;
}
ProfilerRange::~ProfilerRange() {
  if (handle_ != nullptr) aoti_record_function_end(handle_);
}

AtenTensorHandle empty_output(const RegionEntry& entry, size_t output) {
  const Shape& shape = entry.net->output_descs()[output].shape;
  const std::vector<int64_t>* const order =
      entry.orders.empty() || entry.orders[output].empty() ? nullptr : &entry.orders[output];
  const auto rank = static_cast<size_t>(shape.rank());
  std::vector<int64_t> sizes(rank), strides(rank);
  int64_t stride = 1;
  for (size_t i = rank; i-- > 0;) {
    // The net's shape is the one in memory order; sizes and strides are given in the host's order.
    const size_t axis = order == nullptr ? i : static_cast<size_t>((*order)[i]);
    sizes[axis] = shape[static_cast<int>(i)];
    strides[axis] = stride;
    stride *= std::max<int64_t>(sizes[axis], 1);
  }
  AtenTensorHandle handle = nullptr;
  STABLE_TORCH_ERROR_CODE_CHECK(aoti_torch_empty_strided(shape.rank(), sizes.data(), strides.data(),
                                                         torch_dtype(entry.net->output_schemas()[output].dtype),
                                                         aoti_torch_device_type_cpu(), 0, &handle));
  return handle;
}

void run_on_torch(const RegionEntry& entry, std::span<const void* const> inputs, std::span<void* const> outputs,
                  std::span<const CacheLines* const> read_next) {
  TorchPool pool(entry.net->threads());
  entry.net->run(inputs, outputs, pool.parallel_for(), read_next);
}

}  // namespace softneuro
