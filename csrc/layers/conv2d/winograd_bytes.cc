// Winograd convolution of quantized blobs with float32 in between: bytes are read as tiles are encoded, and written
// when they are decoded, so that blobs lie as those of int8.cc do. For machines without dot products of bytes.
#include <utility>

#include "layers/conv2d/winograd_cost.h"
#include "layers/conv2d/winograd_of_bytes.h"
#include "layers/weights/held_rows.h"

namespace softneuro {
namespace {

// As WinogradParams.
SN_PARAMS(WinogradBytesParams, tile, block, split, passing);

class WinogradBytesConv2d final : public Routine {
 public:
  WinogradBytesConv2d(Isa isa, DType out)
      : Routine([&] {
          RoutineInfo info = int8_info("conv2d", isa, Layout::nhwc(), out);
          info.algorithm = "winograd_bytes";
          info.error = ErrorClass::winograd;
          info.quantizes_first = out == DType::qint8;
          return info;
        }()) {}

  Refusal check(const Problem& problem) const override {
    for (const Refusal& refusal : {check_int8_blobs(problem), check_int8_post(problem),
                                   check_winograd(conv2d_params(problem), isa_block(info().isa))}) {
      if (!refusal.accepted()) return refusal;
    }
    if (problem.layer->weight("weight")->desc().quantization == nullptr) return "the weights are not quantized";
    return tunings(problem).empty() ? Refusal("no transform for this kernel and stride, or scratch beyond 256 MiB")
                                    : Refusal();
  }

  // Dot products of bytes have four times the peak of float32, and no transforms.
  bool promising(const Problem&) const override {
    return !isa_available(Isa::avxvnni) && !isa_available(Isa::avx512vnni) && !isa_available(Isa::amx);
  }

  std::vector<std::string> param_names() const override { return WinogradBytesParams::names(); }
  std::vector<Tuning> tunings(const Problem& problem) const override {
    std::vector<Tuning> list;
    for (const WinogradParams& params :
         WinogradCost(kernels(), false).choices(conv2d_params(problem), problem.threads, false)) {
      list.push_back(WinogradBytesParams{params.tile, params.block, params.split, params.passing});
    }
    return list;
  }

  std::string pack_key(const Problem& problem, const Tuning& tuning) const override {
    const auto params = WinogradBytesParams::of(tuning);
    return int8_pack_key(problem) + (params.passing != 0 ? "taps" : "tile " + std::to_string(params.tile));
  }
  Packing packing(const Problem& problem, const Tuning& tuning) const override {
    const WinogradShape shape = checked_shape(problem, WinogradBytesParams::of(tuning));
    const Shape& weight = problem.layer->weight("weight")->shape();
    const int64_t kinds = shape.in_passing ? weight[2] * weight[3] : shape.weights();
    Packing packing;
    packing.add("weights", winograd_packed_size(shape, kernels().block), DType::float32, kinds * weight[0] * weight[1]);
    add_winograd_ends(packing, problem, winograd_bias_size(shape, kernels().block));
    return packing;
  }
  void pack(const Problem& problem, const Tuning& tuning, Packed& to) const override {
    const WinogradShape shape = checked_shape(problem, WinogradBytesParams::of(tuning));
    const HeldRows rows(*problem.layer->weight("weight"));
    winograd_pack(shape, kernels(), {rows.values(), rows.factors()}, to.at<float>("weights"));
    pack_winograd_ends(problem, winograd_bias_size(shape, kernels().block), to);
  }

  std::unique_ptr<const Prepared> prepare(const Problem& problem, const Tuning& tuning,
                                          std::shared_ptr<const Packed> packed) const override {
    const auto params = WinogradBytesParams::of(tuning);
    parse_positive("block", params.block);
    return std::make_unique<PreparedWinogradOfBytes<WinogradArgs, WinogradKernels>>(
        problem, kernels(), checked_shape(problem, params), params.block, parse_split(params.split), info().out.dtype,
        std::move(packed));
  }

  // Sums err by this before they are brought to steps.
  double expected_error(const Problem& problem, const Tuning& tuning) const override {
    return winograd_error(checked_shape(problem, WinogradBytesParams::of(tuning)));
  }

 private:
  const WinogradKernels& kernels() const { return *winograd_kernels(info().isa); }
  WinogradShape checked_shape(const Problem& problem, const WinogradBytesParams& params) const {
    WinogradShape shape = checked_winograd_shape(kernels(), conv2d_params(problem), params.tile, params.passing, false);
    shape.bytes = true;
    return shape;
  }
};

}  // namespace

void conv2d_winograd_bytes(RoutineList& list) {
  for (const Isa isa : all_isas()) {
    for (const DType out : {DType::qint8, DType::float32}) list.add<WinogradBytesConv2d>(isa, out);
  }
}

}  // namespace softneuro
