#include "torch_backend/native/ops/run_net.h"

#include <torch/csrc/stable/ops.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "base/error.h"

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

// THE table of torch's types that nets take and give, by the core's. Quantized blobs at the border are unsigned.
struct TorchType {
  DType dtype;
  int32_t torch;
};
std::span<const TorchType> torch_types() {
  static const std::array types{
      TorchType{DType::float32, aoti_torch_dtype_float32()},   TorchType{DType::float16, aoti_torch_dtype_float16()},
      TorchType{DType::bfloat16, aoti_torch_dtype_bfloat16()}, TorchType{DType::uint8, aoti_torch_dtype_uint8()},
      TorchType{DType::int8, aoti_torch_dtype_int8()},         TorchType{DType::int32, aoti_torch_dtype_int32()},
      TorchType{DType::int64, aoti_torch_dtype_int64()},       TorchType{DType::boolean, aoti_torch_dtype_bool()},
      TorchType{DType::qint8, aoti_torch_dtype_uint8()}};
  return types;
}

// Whether the strides are those of the layout's dense blob; axes of one index have none that matter.
bool lies_as(const int64_t* sizes, const int64_t* strides, int64_t rank, const Layout& layout) {
  int64_t expected = 1;
  const std::vector<int> order = memory_order(static_cast<int>(rank), layout);
  return std::all_of(order.rbegin(), order.rend(), [&](int axis) {
    if (sizes[axis] == 1) return true;
    const bool fits = strides[axis] == expected;
    expected *= sizes[axis];
    return fits;
  });
}

constexpr int64_t form_of(int64_t rank, int64_t type, bool channels_last) {
  return rank | type << 8 | (channels_last ? 1 << 16 : 0);
}

}  // namespace

bool append_input(AtenTensorHandle input, std::vector<int64_t>& signature) {
  int32_t type = -1, device = -1;
  int64_t rank = 0, *sizes = nullptr, *strides = nullptr;
  bool contiguous = false;
  STABLE_TORCH_ERROR_CODE_CHECK(aoti_torch_get_dtype(input, &type));
  STABLE_TORCH_ERROR_CODE_CHECK(aoti_torch_get_device_type(input, &device));
  STABLE_TORCH_ERROR_CODE_CHECK(aoti_torch_get_dim(input, &rank));
  STABLE_TORCH_ERROR_CODE_CHECK(aoti_torch_get_sizes(input, &sizes));
  STABLE_TORCH_ERROR_CODE_CHECK(aoti_torch_is_contiguous(input, &contiguous));
  const auto types = torch_types();
  const auto found = std::find_if(types.begin(), types.end(), [&](const TorchType& t) { return t.torch == type; });
  const bool known = found != types.end() && device == aoti_torch_device_type_cpu();
  bool channels_last = false;
  // Nets reorder no integers but images of bytes.
  const bool reordered = known && (dtype_kind(found->dtype) == DTypeKind::real || found->dtype == DType::uint8);
  if (!contiguous && reordered && rank >= 3) {
    STABLE_TORCH_ERROR_CODE_CHECK(aoti_torch_get_strides(input, &strides));
    channels_last = lies_as(sizes, strides, rank, Layout::nhwc());
  }
  constexpr int64_t no_type = 0xff;  // of which there is no net
  signature.push_back(form_of(rank, known ? static_cast<int64_t>(found->dtype) : no_type, channels_last));
  signature.insert(signature.end(), sizes, sizes + rank);
  return known && (contiguous || channels_last);
}

ProfilerRange::ProfilerRange(std::string_view region) {
  const std::string name = "softneuro::" + std::string(region);
  if (aoti_record_function_start(name.c_str(), nullptr, nullptr, 0, &handle_) != 0) handle_ = nullptr;
}
ProfilerRange::~ProfilerRange() {
  if (handle_ != nullptr) aoti_record_function_end(handle_);
}

AtenTensorHandle empty_output(const Ready& ready, size_t output) {
  const Shape& shape = ready.net->output_descs()[output].shape;
  const Schema& schema = ready.net->output_schemas()[output];
  const std::vector<int64_t>* const order =
      ready.orders.empty() || ready.orders[output].empty() ? nullptr : &ready.orders[output];
  const auto rank = static_cast<size_t>(shape.rank());
  const bool channels_last = schema.layout == Layout::nhwc();
  std::vector<int64_t> sizes(rank), strides(rank);
  int64_t stride = 1;
  for (size_t i = rank; i-- > 0;) {
    // Where there is an order, the net's shape is the one in memory order; sizes and strides are given in the host's.
    size_t axis = order == nullptr ? i : static_cast<size_t>((*order)[i]);
    if (channels_last) axis = i == rank - 1 ? 1 : i == 0 ? 0 : i + 1;
    sizes[axis] = shape[static_cast<int>(channels_last ? axis : i)];
    strides[axis] = stride;
    stride *= std::max<int64_t>(sizes[axis], 1);
  }
  const auto types = torch_types();
  const auto type =
      std::find_if(types.begin(), types.end(), [&](const TorchType& t) { return t.dtype == schema.dtype; });
  if (type == types.end()) throw Error("an output is " + schema.str() + ", which torch's tensors are not made for");
  AtenTensorHandle handle = nullptr;
  STABLE_TORCH_ERROR_CODE_CHECK(aoti_torch_empty_strided(shape.rank(), sizes.data(), strides.data(), type->torch,
                                                         aoti_torch_device_type_cpu(), 0, &handle));
  return handle;
}

void run_on_torch(const Ready& ready, std::span<const void* const> inputs, std::span<void* const> outputs) {
  TorchPool pool(ready.net->threads());
  ready.run(inputs, outputs, pool.parallel_for());
}

}  // namespace softneuro
