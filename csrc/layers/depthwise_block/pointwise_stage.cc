#include "layers/depthwise_block/pointwise_stage.h"

#include <algorithm>

#include "layers/conv2d/pointwise_shape.h"
#include "layers/inner_product.h"

namespace softneuro {
namespace {

constexpr int pixel_bytes = 24 << 10;  // of a stage's input that all its panels pass over: most of an L1

StagePacking stage_packing(Isa isa, int panel) {
  if (panel == added_panel) {
    return {
        .floats =
            [isa](const Conv2dParams& p) { return conv_inner_product_packed_size(pointwise_shape(p), isa_block(isa)); },
        .pack = [isa](const Conv2dParams& p, const Layer& stage,
                      float* packed) { pack_inner_product(stage, pointwise_shape(p), isa, packed); }};
  }
  const ConvDirectKernels& kernels = *conv_direct_kernels(isa);
  return {
      .floats = [&kernels](const Conv2dParams& p) { return conv_direct_packed_size(direct_shape(p), kernels.block); },
      .pack =
          [&kernels, panel](const Conv2dParams& p, const Layer& stage, float* packed) {
            kernels.pack(direct_shape(p), panel, {stage.weight("weight")->values().get()}, packed);
          }};
}

ConvDirectArgs direct_args(const Conv2dParams& p, const Layer& stage, int panel, const float* weights,
                           const float* bias) {
  ConvDirectArgs args{};
  args.shape = direct_shape(p);
  const int64_t pixels = pixel_bytes / (p.c * static_cast<int64_t>(sizeof(float)));
  args.tiling = {panel, static_cast<int>(std::max<int64_t>(pixels, 28)), static_cast<int>(p.c)};
  args.weights = weights;
  args.epilogue = {.bias = bias, .activation = stage.post.activation};
  return args;
}

}  // namespace

BlockPacking block_packing(Isa isa, int expand_panel, int project_panel) {
  return {stage_packing(isa, expand_panel), stage_packing(isa, project_panel), isa_block(isa)};
}

PointwiseStage::PointwiseStage(const Conv2dParams& p, const Layer& stage, Isa isa, int panel, const float* weights,
                               const float* bias, const Planes& planes) {
  if (panel == added_panel) {
    // What was expanded of two blocks is still near when it is filtered.
    panel_ = 2;
    added_ = conv_inner_product_kernels(isa);
    added_args_.shape = pointwise_shape(p);
    added_args_.row_block = static_cast<int>(planes.most_pixels);
    added_args_.weights = weights;
    added_args_.epilogue.activation = stage.post.activation;
    added_args_.src_plane = planes.src;
    added_args_.dst_plane = planes.dst;
    added_args_.in_place = planes.in_place;
    return;
  }
  panel_ = panel;
  direct_ = conv_direct_kernels(isa);
  direct_args_ = direct_args(p, stage, panel, weights, bias);
  direct_args_.src_plane = planes.src;
  direct_args_.dst_plane = planes.dst;
}

size_t PointwiseStage::scratch_bytes() const { return added_ == nullptr ? 0 : added_->scratch_bytes(added_args_); }

ConvInnerProductArgs PointwiseStage::added_call(const StagePixels& pixels) const {
  ConvInnerProductArgs call = added_args_;
  call.src = pixels.src;
  call.dst = pixels.dst;
  call.epilogue.residual = pixels.residual;
  return call;
}

void PointwiseStage::prepare(const StagePixels& pixels, void* scratch) const {
  if (added_ != nullptr) added_->prepare(added_call(pixels), 0, pixels.count, scratch);
}

void PointwiseStage::run(const StagePixels& pixels, int begin, int end, void* scratch) const {
  if (added_ != nullptr) {
    added_->run(added_call(pixels), begin, end, 0, pixels.count, scratch);
    return;
  }
  ConvDirectArgs call = direct_args_;
  call.src = pixels.src;
  call.dst = pixels.dst;
  call.epilogue.residual = pixels.residual;
  call.src_near = pixels.near;
  direct_->run_pointwise(call, begin / panel_, (end + panel_ - 1) / panel_, 0, pixels.count);
}

}  // namespace softneuro
