#include "layers/conv2d/shapes.h"

namespace softneuro {

Refusal check_int_sizes(const Conv2dParams& p) {
  return check_kernel_sizes({p.kh * p.kw, p.kh * p.dh, p.kw * p.dw, p.sh, p.sw, p.h + p.pt + p.pb, p.w + p.pl + p.pr,
                             p.h * p.w, p.oh * p.ow, p.c, p.k});
}

Refusal check_pointwise(const Conv2dParams& p) {
  if (!p.pointwise()) return "not a 1x1 kernel without padding";
  if (p.groups != 1) return "has groups";
  return check_int_sizes(p);
}

ConvDirectShape direct_shape(const Conv2dParams& p) {
  return {.groups = narrow(p.groups),
          .in_channels = narrow(p.group_c()),
          .out_channels = narrow(p.group_k()),
          .h = narrow(p.h),
          .w = narrow(p.w),
          .out_h = narrow(p.oh),
          .out_w = narrow(p.ow),
          .kernel_h = narrow(p.kh),
          .kernel_w = narrow(p.kw),
          .stride_h = narrow(p.sh),
          .stride_w = narrow(p.sw),
          .dilation_h = narrow(p.dh),
          .dilation_w = narrow(p.dw),
          .pad_top = narrow(p.pt),
          .pad_left = narrow(p.pl)};
}

PointwiseShape pointwise_shape(const Conv2dParams& p) {
  return {.in_channels = narrow(p.c),
          .out_channels = narrow(p.k),
          .h = narrow(p.h),
          .w = narrow(p.w),
          .out_h = narrow(p.oh),
          .out_w = narrow(p.ow),
          .stride_h = narrow(p.sh),
          .stride_w = narrow(p.sw)};
}

int worth_threads(const Conv2dParams& p, int threads) {
  const auto outputs = static_cast<double>(p.n * p.k * p.oh * p.ow),
             inputs = static_cast<double>(p.n * p.c * p.h * p.w);
  const auto filter = static_cast<double>(p.group_c() * p.kh * p.kw);
  return worth_threads(2 * outputs * filter, 4 * (outputs + inputs + static_cast<double>(p.k) * filter), threads);
}

}  // namespace softneuro
