// Depthwise convolution of quantized blobs whose channels are side by side, to others or to floats.
#include "kernels/conv_depthwise_int8/conv_depthwise_int8.h"

#include <cmath>

#include "layers/conv2d/shapes.h"
#include "layers/quantized/int8.h"

namespace softneuro {
namespace {

class PreparedDepthwiseInt8 final : public PreparedSplit {
 public:
  PreparedDepthwiseInt8(const Problem& problem, const ConvDepthwiseInt8Kernels& kernels, DType residual,
                        std::shared_ptr<const Packed> packed)
      : PreparedSplit(problem, std::move(packed)), kernels_(kernels), p_(conv2d_params(problem)) {
    if (p_.empty()) return;
    args_ = {.channels = narrow(p_.c),
             .h = narrow(p_.h),
             .w = narrow(p_.w),
             .oh = narrow(p_.oh),
             .ow = narrow(p_.ow),
             .kh = narrow(p_.kh),
             .kw = narrow(p_.kw),
             .sh = narrow(p_.sh),
             .sw = narrow(p_.sw),
             .dh = narrow(p_.dh),
             .dw = narrow(p_.dw),
             .pt = narrow(p_.pt),
             .pl = narrow(p_.pl)};
    args_.src_zero = static_cast<uint8_t>(problem.in[0].quantization->zero_points[0]);
    args_.weights = packed_->at<int8_t>("weights");
    args_.narrow = *packed_->at<int32_t>("narrow") != 0;
    args_.start = packed_->at<int32_t>("start");
    args_.epilogue = int8_epilogue(problem, residual);
    args_.epilogue.scale = packed_->at<float>("scale");
    args_.epilogue.bias = packed_->at<float>("bias");
    // Bounds of the largest products.
    const int64_t blocks = (p_.c + kernels.block - 1) / kernels.block;
    const float products = 2.0F * 255 * 128 * static_cast<float>(p_.kh * p_.kw);
    for (int64_t place = 0; place < blocks * kernels.block; ++place) {
      const float scale = args_.epilogue.scale[place], bias = args_.epilogue.bias[place];
      args_.large = args_.large || !(products * scale + std::fabs(bias) < 0x1p30F);
    }
    const double outputs = static_cast<double>(p_.n * p_.k * p_.oh * p_.ow);
    const double bytes = outputs + static_cast<double>(p_.n * p_.c * p_.h * p_.w);
    split_ =
        WorkSplit(p_.n, blocks, p_.oh,
                  worth_threads(outputs * static_cast<double>(p_.kh * p_.kw), bytes, problem.threads), SplitBy::rows);
  }

  void run(const RunArgs& args) const override {
    const TensorView &in = args.in[0], &out = args.out;
    for_pieces(args, [&](int64_t image, Range blocks, Range rows, std::byte*) {
      ConvDepthwiseInt8 call = args_;
      call.src = static_cast<const uint8_t*>(in.at(image * in.strides[0]));
      call.src_end = call.src + in.image_elements();
      call.dst = out.at(image * out.strides[0]);
      if (residual_) call.epilogue.residual.data = args.in[1].at(image * args.in[1].strides[0]);
      kernels_.run(call, static_cast<int>(blocks.begin), static_cast<int>(blocks.end), static_cast<int>(rows.begin),
                   static_cast<int>(rows.end));
    });
  }

 private:
  const ConvDepthwiseInt8Kernels& kernels_;
  Conv2dParams p_;
  ConvDepthwiseInt8 args_;
};

class DepthwiseInt8 final : public Routine {
 public:
  DepthwiseInt8(Isa isa, DType out)
      : Routine([&] {
          RoutineInfo info = int8_info("conv2d", isa, Layout::nhwc(), out);
          info.algorithm = "depthwise_int8";
          return info;
        }()) {}

  Refusal check(const Problem& problem) const override {
    const Conv2dParams p = conv2d_params(problem);
    if (!p.depthwise()) return "not depthwise";
    if (const Refusal refusal = check_int8(problem, {p.groups, 1, p.kh * p.kw}); !refusal.accepted()) return refusal;
    return check_int_sizes(p);
  }

  // Windows of three and five columns have tiles where bytes come out that no more than a clamp is done to; what is
  // finished pixel by pixel takes five times as long (AMD Zen 3).
  bool promising(const Problem& problem) const override {
    const Conv2dParams p = conv2d_params(problem);
    if (p.kw != 3 && p.kw != 5) return true;
    return info().out.dtype == DType::qint8 && !problem.layer->post.residual && byte_bounds(problem);
  }

  std::string pack_key(const Problem& problem, const Tuning&) const override { return int8_pack_key(problem); }
  Packing packing(const Problem& problem, const Tuning&) const override {
    const Conv2dParams p = conv2d_params(problem);
    const int64_t places = (p.c + block() - 1) / block() * block();
    return int8_packing({p.groups, 1, p.kh * p.kw}, static_cast<int64_t>(packed_bytes(p)), places);
  }
  void pack(const Problem& problem, const Tuning&, Packed& to) const override {
    const Conv2dParams p = conv2d_params(problem);
    const auto held = int8_weights(problem);
    const int8_t* weights = held.get();
    conv_depthwise_int8_pack(narrow(p.c), narrow(p.kh), narrow(p.kw), block(), weights, to.at<int8_t>("weights"));
    const Int8Scales scales = int8_scales(problem, {p.groups, 1, p.kh * p.kw}, weights);
    const int64_t places = (p.c + block() - 1) / block() * block();
    for (int place = 0; place < places; ++place) {
      const auto channel = static_cast<size_t>(conv_depthwise_int8_channel_at(place, block()));
      const bool there = static_cast<int64_t>(channel) < p.c;
      to.at<int32_t>("start")[place] = there ? scales.start[channel] : 0;
      to.at<float>("scale")[place] = there ? scales.scale[channel] : 0;
      to.at<float>("bias")[place] = there ? scales.bias[channel] : 0;
    }
    *to.at<int32_t>("narrow") = gemm_int8_is_narrow(to.at<int8_t>("weights"), packed_bytes(p)) ? 1 : 0;
  }

  std::unique_ptr<const Prepared> prepare(const Problem& problem, const Tuning&,
                                          std::shared_ptr<const Packed> packed) const override {
    return std::make_unique<PreparedDepthwiseInt8>(problem, *conv_depthwise_int8_kernels(info().isa), info().out.dtype,
                                                   std::move(packed));
  }

 private:
  // As many bytes as the level's vectors have.
  int block() const { return isa_block(vectors_of(info().isa)) * 4; }
  size_t packed_bytes(const Conv2dParams& p) const {
    return conv_depthwise_int8_packed_bytes(narrow(p.c), narrow(p.kh), narrow(p.kw), block());
  }
};

}  // namespace

void conv2d_depthwise_int8(RoutineList& list) {
  for (const Isa isa : int8_isas()) {
    if (isa == Isa::amx) continue;
    for (const DType out : {DType::qint8, DType::float32}) list.add<DepthwiseInt8>(isa, out);
  }
}

}  // namespace softneuro
