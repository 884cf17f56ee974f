// Winograd convolution of quantized blobs with float32 in between: bytes are read as tiles are encoded, and written
// when they are decoded, so that blobs lie as those of int8.cc do. For machines without dot products of bytes.
#include <algorithm>
#include <utility>

#include "layers/conv2d/winograd.h"
#include "layers/conv2d/winograd_cost.h"
#include "layers/quantized/int8.h"
#include "layers/weights/held_rows.h"

namespace softneuro {
namespace {

// As WinogradParams.
SN_PARAMS(WinogradBytesParams, tile, block, split, passing);

class PreparedWinogradBytes final : public PreparedSplit {
 public:
  PreparedWinogradBytes(const Problem& problem, const WinogradKernels& kernels, const WinogradShape& shape,
                        const WinogradBytesParams& params, DType residual, std::shared_ptr<const Packed> packed)
      : PreparedSplit(problem, std::move(packed)), run_(kernels.run) {
    const SplitBy by = parse_split(params.split);
    args_.shape = shape;
    args_.weights = packed_->at<float>("weights");
    args_.src_zero = static_cast<float>(problem.in[0].quantization->zero_points[0]);
    args_.epilogue = int8_epilogue(problem, residual);
    args_.epilogue.scale = packed_->at<float>("scale");
    args_.epilogue.bias = packed_->at<float>("bias");
    if (shape.tiles() == 0 || shape.out_channels == 0) return;
    args_.block = std::min(params.block, shape.tiles());
    split_ = WorkSplit(1, winograd_panels(shape, kernels.block), shape.tiles(), problem.threads, by,
                       by == SplitBy::rows ? args_.block : 0);
    scratch_ = round_to_line(kernels.scratch_bytes(shape, args_.block));
  }

  bool works_on_residual() const override { return true; }

  void run(const RunArgs& args) const override {
    WinogradArgs call = args_;
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
  decltype(WinogradKernels::run) run_;
  WinogradArgs args_{};
};

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
    const size_t columns = winograd_bias_size(shape, kernels().block);
    Packing packing;
    packing.add("weights", winograd_packed_size(shape, kernels().block), DType::float32, kinds * weight[0] * weight[1]);
    packing.add("scale", columns, DType::float32, weight[0]);
    packing.add("bias", columns, DType::float32, weight[0]);
    return packing;
  }
  // The weights are reals, so only the scale of the input is left for the sums.
  void pack(const Problem& problem, const Tuning& tuning, Packed& to) const override {
    const WinogradShape shape = checked_shape(problem, WinogradBytesParams::of(tuning));
    const HeldRows rows(*problem.layer->weight("weight"));
    winograd_pack(shape, kernels(), {rows.values(), rows.factors()}, to.at<float>("weights"));
    const double steps = int8_sum_unit(problem);
    const auto columns = static_cast<int64_t>(winograd_bias_size(shape, kernels().block));
    const double scale = static_cast<double>(problem.in[0].quantization->scales[0]) * steps;
    std::fill_n(to.at<float>("scale"), columns, static_cast<float>(scale));
    const Constant* bias = problem.layer->find_weight("bias");
    const std::vector<double> offsets = bias != nullptr ? (*bias)->doubles() : std::vector<double>();
    float* const end = std::transform(offsets.begin(), offsets.end(), to.at<float>("bias"),
                                      [steps](double offset) { return static_cast<float>(offset * steps); });
    std::fill(end, to.at<float>("bias") + columns, 0.0F);
  }

  std::unique_ptr<const Prepared> prepare(const Problem& problem, const Tuning& tuning,
                                          std::shared_ptr<const Packed> packed) const override {
    const auto params = WinogradBytesParams::of(tuning);
    parse_positive("block", params.block);
    return std::make_unique<PreparedWinogradBytes>(problem, kernels(), checked_shape(problem, params), params,
                                                   info().out.dtype, std::move(packed));
  }

  // Of sums, before they are brought to steps.
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
