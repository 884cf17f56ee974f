#include "layers/depthwise_block/pointwise_stage.h"

#include <algorithm>

#include "layers/conv2d/shapes.h"
#include "layers/products/winograd_1968.h"

namespace softneuro {
namespace {

constexpr int pixel_bytes = 24 << 10;  // of a stage's input that all its panels pass over: most of an L1

StagePacking added_packing(Isa isa) {
  return {
      .packing = [isa](const Conv2dParams& p, const Layer&) { return winograd_1968_packing(pointwise_shape(p), isa); },
      .pack = [isa](const Conv2dParams& p, const Layer& stage,
                    Packed& to) { pack_winograd_1968(stage, pointwise_shape(p), isa, to); }};
}

StagePacking direct_packing(Isa isa, int panel) {
  const ConvDirectKernels& kernels = *conv_direct_kernels(isa);
  return {.packing =
              [&kernels](const Conv2dParams& p, const Layer& stage) {
                const ConvDirectShape shape = direct_shape(p);
                Packing packing;
                packing.add("weights", conv_direct_packed_size(shape, kernels.block), DType::float32, p.c * p.k);
                add_padded(packing, "bias", stage.find_weight("bias"), conv_direct_bias_size(shape, kernels.block));
                return packing;
              },
          .pack =
              [&kernels, panel](const Conv2dParams& p, const Layer& stage, Packed& to) {
                const auto weight = stage.weight("weight")->values();
                kernels.pack(direct_shape(p), panel, {weight.get()}, to.at<float>("weights"));
                pack_padded(stage.find_weight("bias"), to, "bias");
              }};
}

StagePacking stage_packing(Isa isa, int panel) {
  return panel == added_panel ? added_packing(isa) : direct_packing(isa, panel);
}

ConvDirectArgs direct_args(const Conv2dParams& p, const Layer& stage, int panel, const Packed& packed) {
  ConvDirectArgs args{};
  args.shape = direct_shape(p);
  const int64_t pixels = pixel_bytes / (p.c * static_cast<int64_t>(sizeof(float)));
  args.tiling = {panel, static_cast<int>(std::max<int64_t>(pixels, 28)), static_cast<int>(p.c)};
  args.weights = packed.at<float>("weights");
  args.epilogue = {.bias = packed.at<float>("bias"), .activation = stage.post.activation};
  return args;
}

}  // namespace

BlockPacking block_packing(Isa isa, int expand_panel, int project_panel) {
  return {stage_packing(isa, expand_panel), stage_packing(isa, project_panel), isa_block(isa)};
}

PointwiseStage::PointwiseStage(const Conv2dParams& p, const Layer& stage, Isa isa, int panel, const Packed& packed,
                               const Planes& planes) {
  if (panel == added_panel) {
    // What was expanded of two blocks is still near when it is filtered.
    panel_ = 2;
    added_ = conv_winograd_1968_kernels(isa);
    added_args_.shape = pointwise_shape(p);
    added_args_.row_block = static_cast<int>(planes.most_pixels);
    added_args_.weights = packed.at<float>("weights");
    added_args_.epilogue.activation = stage.post.activation;
    added_args_.src_plane = planes.src;
    added_args_.dst_plane = planes.dst;
    added_args_.in_place = planes.in_place;
    return;
  }
  panel_ = panel;
  direct_ = conv_direct_kernels(isa);
  direct_args_ = direct_args(p, stage, panel, packed);
  direct_args_.src_plane = planes.src;
  direct_args_.dst_plane = planes.dst;
}

size_t PointwiseStage::scratch_bytes() const { return added_ == nullptr ? 0 : added_->scratch_bytes(added_args_); }

ConvWinograd1968Args PointwiseStage::added_call(const StagePixels& pixels) const {
  ConvWinograd1968Args call = added_args_;
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
