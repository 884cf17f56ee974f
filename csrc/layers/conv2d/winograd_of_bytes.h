// Winograd's routines on quantized blobs share this: weights are reals, whatever they are packed as.
#pragma once

#include <algorithm>
#include <memory>
#include <utility>

#include "layers/conv2d/winograd.h"
#include "layers/quantized/int8.h"

namespace softneuro {

// Adds scales and biases of so many sums.
inline void add_winograd_ends(Packing& packing, const Problem& problem, size_t columns) {
  const int64_t channels = problem.layer->weight("weight")->shape()[0];
  packing.add("scale", columns, DType::float32, channels);
  packing.add("bias", columns, DType::float32, channels);
}
// Only the scale of the input is left for the sums.
inline void pack_winograd_ends(const Problem& problem, size_t columns, Packed& to) {
  const double steps = int8_sum_unit(problem);
  const double scale = static_cast<double>(problem.in[0].quantization->scales[0]) * steps;
  std::fill_n(to.at<float>("scale"), columns, static_cast<float>(scale));
  const Constant* bias = problem.layer->find_weight("bias");
  const std::vector<double> offsets = bias != nullptr ? (*bias)->doubles() : std::vector<double>();
  float* const end = std::transform(offsets.begin(), offsets.end(), to.at<float>("bias"),
                                    [steps](double offset) { return static_cast<float>(offset * steps); });
  std::fill(end, to.at<float>("bias") + columns, 0.0F);
}

// Args and Kernels are alike: those of kernels/winograd, or of kernels/winograd_int16.
template <class Args, class Kernels>
class PreparedWinogradOfBytes final : public PreparedSplit {
 public:
  PreparedWinogradOfBytes(const Problem& problem, const Kernels& kernels, const WinogradShape& shape, int block,
                          SplitBy by, DType residual, std::shared_ptr<const Packed> packed)
      : PreparedSplit(problem, std::move(packed)), run_(kernels.run) {
    args_.shape = shape;
    args_.weights = packed_->at<float>("weights");
    args_.src_zero = static_cast<decltype(args_.src_zero)>(problem.in[0].quantization->zero_points[0]);
    args_.epilogue = int8_epilogue(problem, residual);
    args_.epilogue.scale = packed_->at<float>("scale");
    args_.epilogue.bias = packed_->at<float>("bias");
    if (shape.tiles() == 0 || shape.out_channels == 0) return;
    args_.block = std::min(block, shape.tiles());
    split_ = WorkSplit(1, winograd_panels(shape, kernels.block), shape.tiles(), problem.threads, by,
                       by == SplitBy::rows ? args_.block : 0);
    scratch_ = round_to_line(kernels.scratch_bytes(shape, args_.block));
  }

  bool works_on_residual() const override { return true; }

  void run(const RunArgs& args) const override {
    Args call = args_;
    call.src = args.in[0].data;
    call.src_image = args.in[0].strides[0];
    call.dst = args.out.data;
    call.dst_image = args.out.strides[0];
    if (residual_) call.epilogue.residual.data = args.in[1].data, call.residual_image = args.in[1].strides[0];
    for_pieces(args, [&](int64_t, Range panels, Range tiles, std::byte* scratch) {
      run_(call, static_cast<int>(panels.begin), static_cast<int>(panels.end), static_cast<int>(tiles.begin),
           static_cast<int>(tiles.end), scratch);
    });
  }

 private:
  decltype(Kernels::run) run_;
  Args args_{};
};

}  // namespace softneuro
