// image_conv: a convolution of an image of bytes as the reals that each channel's table says they are. Put in by plans
// in place of the layers that it covers, never by a door.
//
//   x[N,C,H,W] of integers from 0 to 255 -> reals: `values`[C,256]
//   conv: -> [N,K,H',W'], `conv_weight`[K,C/groups,kh,kw], `conv_bias`[K], conv2d's attributes. It pads with zeros, as
//   reals.
#pragma once

#include "layers/contract/layer.h"
#include "layers/conv2d/conv2d.h"

namespace softneuro {

constexpr int64_t byte_values = 256;
inline bool is_bytes(const TensorDesc& desc) {
  return desc.kind == ValueKind::integer && desc.least >= 0 && desc.most < byte_values;
}

struct ImageConvStages {
  Layer conv;        // with the layer's post-ops; without inputs and outputs
  TensorDesc image;  // the blob of reals that is not there

  Conv2dParams params() const { return conv2d_params(conv, image); }
};
// Throws Error about the first thing that is wrong.
ImageConvStages image_conv_stages(const Layer& layer, const TensorDesc& in);

// For layers that begin with a convolution. Makes a stage the image_conv of these weights, or, with no `values`, the
// conv2d; bias: null for none.
void set_conv(Layer& stage, const Constant* values, const Constant& weight, const Constant* bias);
// The convolution that such a stage is.
Conv2dParams conv_params(const Layer& stage, const TensorDesc& in);

class RoutineList;
// image_conv's routines, whose Prepared is a PreparedConv2dRows.
void image_conv_rows(RoutineList& list);

}  // namespace softneuro
