// Winograd convolution on nchw{c}c blobs, fused per block of tiles: strides 1 and 2, any padding, kernels up to 7 taps
// along an axis, one-dimensional ones included.
#include "layers/conv2d/winograd.h"

#include <algorithm>
#include <utility>

#include "layers/conv2d/rows.h"
#include "layers/conv2d/winograd_cost.h"
#include "layers/weights/held_rows.h"

namespace softneuro {

WinogradShape winograd_shape(const Conv2dParams& p, int tile, bool in_passing, bool adds) {
  const ConvDirectShape s = direct_shape(p);
  return {.groups = s.groups,
          .in_channels = s.in_channels,
          .out_channels = s.out_channels,
          .images = static_cast<int>(p.n),
          .h = s.h,
          .w = s.w,
          .out_h = s.out_h,
          .out_w = s.out_w,
          .kernel_h = s.kernel_h,
          .kernel_w = s.kernel_w,
          .tile_h = s.kernel_h == 1 ? 1 : tile,
          .tile_w = s.kernel_w == 1 ? 1 : tile,
          .pad_top = s.pad_top,
          .pad_left = s.pad_left,
          .stride_h = s.stride_h,
          .stride_w = s.stride_w,
          .in_passing = in_passing,
          .adds = adds};
}

bool has_transforms(const WinogradKernels& kernels, const WinogradShape& s) {
  return kernels.has_transform(s.tile_h, s.kernel_h, s.stride_h) &&
         kernels.has_transform(s.tile_w, s.kernel_w, s.stride_w);
}

Refusal check_winograd(const Conv2dParams& p, int block) {
  if (p.sh > 2 || p.sw > 2) return "has a stride above 2";
  if ((p.dh != 1 && p.kh > 1) || (p.dw != 1 && p.kw > 1)) return "has a dilation";
  if (p.groups > 1 && (p.group_c() % block != 0 || p.group_k() % block != 0)) {
    return "channels per group are not a multiple of " + std::to_string(block);
  }
  if (p.kh == 1 && p.kw == 1) return "a 1x1 kernel has nothing to save";
  const Refusal sizes = check_int_sizes(p);
  return sizes.accepted() ? check_kernel_outputs(p.n * p.oh * p.ow) : sizes;
}

WinogradShape checked_winograd_shape(const WinogradKernels& kernels, const Conv2dParams& p, int tile, int passing,
                                     bool adds) {
  const bool in_passing = parse_flag("passing", passing);
  if (adds && in_passing) throw Error("additions take weights that are transformed ahead: passing must be 0");
  const bool known = std::count(std::begin(winograd_tiles), std::end(winograd_tiles), tile) > 0;
  const WinogradShape shape = winograd_shape(p, tile, in_passing, adds);
  if (known && has_transforms(kernels, shape) && (!in_passing || kernels.can_pass(shape))) return shape;
  throw Error("there is no transform for tile " + std::to_string(tile) +
              (in_passing ? " with weights transformed in passing" : ""));
}

namespace {

class PreparedWinograd final : public PreparedConv2dRows {
 public:
  PreparedWinograd(const Problem& problem, const WinogradKernels& kernels, const WinogradShape& shape,
                   const WinogradParams& params, std::shared_ptr<const Packed> packed)
      : PreparedConv2dRows(problem, std::move(packed)), run_(kernels.run) {
    const SplitBy by = parse_split(params.split);
    args_.shape = shape;
    args_.weights = find_packed<float>(packed_, "weights");
    args_.epilogue = {.bias = find_packed<float>(packed_, "bias"), .activation = problem.layer->post.activation};
    if (params.packed == 0) {
      rows_ = HeldRows(*problem.layer->weight("weight"));
      args_.rows = {rows_.values(), rows_.factors()};
    }
    if (shape.tiles() == 0 || shape.out_channels == 0) return;
    panels_ = winograd_panels(shape, kernels.block);
    args_.block = std::min(params.block, shape.tiles());
    // In whole blocks of tiles; panels not at all, as each piece would encode all tiles.
    split_ = WorkSplit(1, panels_, shape.tiles(), problem.threads, by, by == SplitBy::rows ? args_.block : 0);
    scratch_ = round_to_line(kernels.scratch_bytes(shape, args_.block));
  }

  bool works_on_residual() const override { return true; }

  void run(const RunArgs& args) const override {
    SharedWork work(split_);
    args.parallel_for(split_.tasks, [&](int64_t task) {
      WinogradArgs call = args_;
      call.src = args.in[0].f32();
      call.src_image = args.in[0].strides[0];
      call.dst = args.out.f32();
      call.dst_image = args.out.strides[0];
      if (residual_) call.epilogue.residual = args.in[1].f32(), call.residual_image = args.in[1].strides[0];
      work.for_task(task, [&](int64_t, Range panels, Range tiles) {
        run_(call, static_cast<int>(panels.begin), static_cast<int>(panels.end), static_cast<int>(tiles.begin),
             static_cast<int>(tiles.end), args.workspace.task(task));
      });
    });
  }

  int64_t row_step() const override { return args_.shape.tile_h; }
  size_t rows_scratch(int64_t) const override { return scratch_; }
  void run_rows(const Conv2dRows& call) const override {
    // The kernel sees an image that begins with these rows.
    WinogradArgs args = args_;
    WinogradShape& s = args.shape;
    s.images = 1;
    s.out_h = static_cast<int>(call.plane_rows);
    s.pad_top -= static_cast<int>(call.rows.begin) * s.stride_h;
    args.src = static_cast<const float*>(call.src);
    args.dst = call.dst;
    const int rows = ceil_div(static_cast<int>(call.rows.end - call.rows.begin), s.tile_h);  // of tiles
    run_(args, 0, panels_, 0, rows * s.tiles_w(), call.scratch);
  }

 private:
  HeldRows rows_;
  int panels_ = 0;
  decltype(WinogradKernels::run) run_;
  WinogradArgs args_{};
};

class WinogradConv2d final : public Routine {
 public:
  // adds: products have additions for multiplications.
  WinogradConv2d(Isa isa, bool adds)
      : Routine({.layer_type = "conv2d",
                 .algorithm = adds ? "winograd_adds" : "winograd",
                 .isa = isa,
                 .in = f32_blocked(isa_block(isa)),
                 .out = f32_blocked(isa_block(isa)),
                 .error = ErrorClass::winograd,
                 .spreads_nonfinite = true}),
        adds_(adds) {}

  Refusal check(const Problem& problem) const override {
    const Conv2dParams p = conv2d_params(problem);
    if (Refusal refusal = check_winograd(p, isa_block(info().isa)); !refusal.accepted()) return refusal;
    return cost().tilings(p, problem.threads).empty()
               ? Refusal("no transform for this kernel and stride, or scratch beyond 256 MiB")
               : Refusal();
  }

  bool promising(const Problem& problem) const override { return cost().promises(conv2d_params(problem)); }

  std::vector<std::string> param_names() const override { return WinogradParams::names(); }
  std::vector<Tuning> tunings(const Problem& problem) const override {
    const bool has_rows = problem.layer->weight("weight")->has_rows();
    const auto choices = cost().choices(conv2d_params(problem), problem.threads, has_rows);
    return {choices.begin(), choices.end()};
  }

  std::string pack_key(const Problem&, const Tuning& tuning) const override {
    const auto params = WinogradParams::of(tuning);
    if (params.packed == 0) return "bias";
    return params.passing != 0 ? "taps" : "tile " + std::to_string(params.tile);
  }
  Packing packing(const Problem& problem, const Tuning& tuning) const override {
    const auto params = WinogradParams::of(tuning);
    const WinogradShape shape = checked_shape(problem, params);
    const int block = kernels().block;
    Packing packing;
    if (params.packed != 0) {
      const Shape& weight = problem.layer->weight("weight")->shape();
      const int64_t kinds = params.passing != 0 ? weight[2] * weight[3] : shape.weights(), terms = adds_ ? 2 : 0;
      packing.add("weights", winograd_packed_size(shape, block), DType::float32,
                  kinds * weight[0] * (weight[1] + terms));
    }
    add_bias(packing, *problem.layer, winograd_bias_size(shape, block));
    return packing;
  }
  void pack(const Problem& problem, const Tuning& tuning, Packed& to) const override {
    const auto params = WinogradParams::of(tuning);
    if (params.packed != 0) {
      const HeldRows rows(*problem.layer->weight("weight"));
      winograd_pack(checked_shape(problem, params), kernels(), {rows.values(), rows.factors()},
                    to.at<float>("weights"));
    }
    pack_bias(*problem.layer, to);
  }

  std::unique_ptr<const Prepared> prepare(const Problem& problem, const Tuning& tuning,
                                          std::shared_ptr<const Packed> packed) const override {
    const auto params = WinogradParams::of(tuning);
    parse_positive("block", params.block);
    return std::make_unique<PreparedWinograd>(problem, kernels(), checked_shape(problem, params), params,
                                              std::move(packed));
  }

  double expected_error(const Problem& problem, const Tuning& tuning) const override {
    return winograd_error(checked_shape(problem, WinogradParams::of(tuning)));
  }

 private:
  const WinogradKernels& kernels() const { return *winograd_kernels(info().isa); }
  WinogradCost cost() const { return {kernels(), adds_}; }

  WinogradShape checked_shape(const Problem& problem, const WinogradParams& params) const {
    const WinogradShape shape =
        checked_winograd_shape(kernels(), conv2d_params(problem), params.tile, params.passing, adds_);
    if (!parse_flag("packed", params.packed) && !shape.in_passing) throw Error("packed may be 0 only with passing 1");
    return shape;
  }

  bool adds_;
};

}  // namespace

void conv2d_winograd(RoutineList& list) {
  for (const bool adds : {false, true}) {
    for (Isa isa : all_isas()) list.add<WinogradConv2d>(isa, adds);
  }
}

}  // namespace softneuro
