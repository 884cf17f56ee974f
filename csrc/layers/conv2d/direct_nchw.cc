// Direct convolution on row-major blobs: for few channels per group, depthwise included, where a matrix product is
// thin.
#include <algorithm>

#include "kernels/conv_nchw/conv_nchw.h"
#include "layers/contract/params.h"
#include "layers/conv2d/shapes.h"
#include "layers/shared/images.h"

namespace softneuro {
namespace {

ConvNchwShape nchw_shape(const Conv2dParams& p) {
  const ConvDirectShape s = direct_shape(p);
  return {s.groups,   s.in_channels, s.out_channels, s.h,          s.w,          s.out_h,   s.out_w,   s.kernel_h,
          s.kernel_w, s.stride_h,    s.stride_w,     s.dilation_h, s.dilation_w, s.pad_top, s.pad_left};
}

SN_PARAMS(DirectNchwParams, rows, split);

class PreparedDirectNchw final : public PreparedSplit {
 public:
  PreparedDirectNchw(const Problem& problem, const ConvNchwKernels& kernels, const DirectNchwParams& params,
                     std::shared_ptr<const Packed> packed)
      : PreparedSplit(problem, std::move(packed)), run_(kernels.run) {
    const Conv2dParams p = conv2d_params(problem);
    args_.shape = nchw_shape(p);
    args_.row_block = params.rows;
    args_.weights = packed_->at<float>("weights");
    args_.epilogue = {.bias = packed_->find<float>("bias"), .activation = problem.layer->post.activation};
    const SplitBy by = parse_split(params.split);
    if (p.empty()) return;
    split_ = WorkSplit(p.n, conv_nchw_panels(args_.shape), p.oh, problem.threads, by);
    scratch_ = round_to_line(kernels.scratch_bytes(args_.shape, params.rows));
  }

  void run(const RunArgs& args) const override {
    for_pieces(args, [&](int64_t image, Range panels, Range rows, std::byte* scratch) {
      run_(for_image(args_, args, residual_, image), static_cast<int>(panels.begin), static_cast<int>(panels.end),
           static_cast<int>(rows.begin), static_cast<int>(rows.end), scratch);
    });
  }

 private:
  decltype(ConvNchwKernels::run) run_;
  ConvNchwArgs args_;
};

class DirectNchwConv2d final : public Routine {
 public:
  explicit DirectNchwConv2d(Isa isa)
      : Routine({.layer_type = "conv2d", .algorithm = "direct", .isa = isa, .in = f32_nchw, .out = f32_nchw}) {}

  Refusal check(const Problem& problem) const override { return check_int_sizes(conv2d_params(problem)); }

  std::vector<std::string> param_names() const override { return DirectNchwParams::names(); }
  std::vector<Tuning> tunings(const Problem& problem) const override {
    const Conv2dParams p = conv2d_params(problem);
    // The copied rows of a group's channels should stay in L2 while its panels pass over them.
    const int64_t budget = l2_bytes() / 4;
    const int64_t row = (p.ow + 16) * p.sw + p.kw * p.dw;
    const int64_t in_rows = std::max<int64_t>(budget / (row * p.group_c() * 4), 1);
    const int64_t fit = (in_rows - (p.kh - 1) * p.dh - 1) / p.sh + 1;
    const int rows = static_cast<int>(std::clamp<int64_t>(fit, 1, std::max<int64_t>(p.oh, 1)));
    const int split = p.groups > 1 ? 1 : 0;
    if (problem.threads == 1) return {DirectNchwParams{rows, split}};
    return {DirectNchwParams{rows, split}, DirectNchwParams{rows, 1 - split}};
  }

  std::string pack_key(const Problem&, const Tuning&) const override { return {}; }
  Packing packing(const Problem& problem, const Tuning&) const override {
    Packing packing;
    packing.add("weights", conv_nchw_packed_size(nchw_shape(conv2d_params(problem))));
    add_bias(packing, *problem.layer, conv2d_params(problem).k);
    return packing;
  }
  void pack(const Problem& problem, const Tuning&, Packed& to) const override {
    conv_nchw_pack(nchw_shape(conv2d_params(problem)), problem.layer->weight("weight")->values().get(),
                   to.at<float>("weights"));
    pack_bias(*problem.layer, to);
  }

  std::unique_ptr<const Prepared> prepare(const Problem& problem, const Tuning& tuning,
                                          std::shared_ptr<const Packed> packed) const override {
    const auto params = DirectNchwParams::of(tuning);
    parse_positive("rows", params.rows);
    return std::make_unique<PreparedDirectNchw>(problem, *conv_nchw_kernels(info().isa), params, std::move(packed));
  }
};

}  // namespace

void conv2d_direct_nchw(RoutineList& list) {
  for (Isa isa : all_isas()) list.add<DirectNchwConv2d>(isa);
}

}  // namespace softneuro
