#include "layers/conv2d/blocked.h"

#include <array>

#include "base/error.h"
#include "layers/shared/images.h"
#include "layers/weights/held_rows.h"

namespace softneuro {
namespace {

class PreparedBlocked final : public PreparedSplit {
 public:
  PreparedBlocked(const Problem& problem, const ConvDirectKernels& kernels, const BlockedParams& params,
                  std::shared_ptr<const Packed> packed)
      : PreparedSplit(problem, std::move(packed)), kernels_(kernels) {
    const Conv2dParams p = conv2d_params(problem);
    const ConvDirectShape shape = direct_shape(p);
    const SplitBy by = parse_split(params.split);
    const bool is_packed = params.packed != 0;
    args_.shape = shape;
    args_.tiling = {params.panel, params.rows, params.c_block};
    args_.weights = find_packed<float>(packed_, "weights");
    args_.epilogue = {.bias = find_packed<float>(packed_, "bias"), .activation = problem.layer->post.activation};
    if (!is_packed) {
      rows_ = HeldRows(*problem.layer->weight("weight"));
      args_.rows = {rows_.values(), rows_.factors()};
    }
    if (p.empty()) return;
    const int64_t rows = shape.pointwise() ? p.oh * p.ow : p.oh;
    split_ = WorkSplit(p.n, conv_direct_panels(shape, kernels.block, params.panel), rows,
                       worth_threads(p, problem.threads), by, unit(shape, by, is_packed));
    if (!shape.pointwise()) kernel_ = round_to_line(kernels.scratch_bytes(shape, args_.tiling));
    scratch_ = kernel_;
    if (!is_packed) {
      scratch_ += round_to_line(conv_direct_panel_size(shape, kernels.block, params.panel) * sizeof(float));
    }
  }

  // Partial sums would overwrite it.
  bool works_on_residual() const override {
    return ceil_div(args_.shape.in_channels, kernels_.block) <= args_.tiling.c_block;
  }

  void run(const RunArgs& args) const override {
    for_pieces(args, [&](int64_t image, Range panels, Range rows, std::byte* scratch) {
      ConvDirectArgs call = for_image(args_, args, residual_, image);
      call.panel_scratch = reinterpret_cast<float*>(scratch + kernel_);
      const auto [panel_begin, panel_end, row_begin, row_end] =
          std::array{static_cast<int>(panels.begin), static_cast<int>(panels.end), static_cast<int>(rows.begin),
                     static_cast<int>(rows.end)};
      if (call.shape.pointwise()) {
        kernels_.run_pointwise(call, panel_begin, panel_end, row_begin, row_end);
      } else {
        kernels_.run(call, panel_begin, panel_end, row_begin, row_end, scratch);
      }
    });
  }

 private:
  // What goes on in pieces: pixels in tiles, rows, and panels where the rows that they read are not copied before. Not
  // pixels where each piece would pack all weights.
  static int64_t unit(const ConvDirectShape& shape, SplitBy by, bool is_packed) {
    if (by == SplitBy::panels) return shape.pointwise() ? 1 : 0;
    if (!is_packed) return 0;
    constexpr int64_t tile = 28;
    return shape.pointwise() ? tile : 1;
  }

  HeldRows rows_;
  const ConvDirectKernels& kernels_;
  ConvDirectArgs args_{};
  size_t kernel_ = 0;  // bytes of the kernel, which a panel's weights follow
};

}  // namespace

BlockedConv2d::BlockedConv2d(const char* algorithm, Isa isa)
    : Routine({.layer_type = "conv2d",
               .algorithm = algorithm,
               .isa = isa,
               .in = f32_blocked(isa_block(isa)),
               .out = f32_blocked(isa_block(isa))}) {}

int BlockedConv2d::max_panel() const { return conv_direct_kernels(info().isa)->max_panel; }

Refusal BlockedConv2d::check(const Problem& problem) const {
  const Conv2dParams p = conv2d_params(problem);
  if (p.groups > 1 && (p.group_c() % block() != 0 || p.group_k() % block() != 0)) {
    return "channels per group are not a multiple of " + std::to_string(block());
  }
  const Refusal sizes = check_int_sizes(p);
  return sizes.accepted() ? check_kernel(p) : sizes;
}

BlockedParams BlockedConv2d::checked(const Tuning& tuning) const {
  const auto params = BlockedParams::of(tuning);
  if (params.panel < 1 || params.panel > max_panel() || params.rows < 1 || params.c_block < 1) {
    throw Error("panel must be in [1, " + std::to_string(max_panel()) + "], rows and c_block positive");
  }
  parse_flag("packed", params.packed);
  return params;
}

std::vector<Tuning> BlockedConv2d::with_unpacked(const Problem& problem,
                                                 const std::vector<BlockedParams>& packed) const {
  std::vector<Tuning> list(packed.begin(), packed.end());
  if (!problem.layer->weight("weight")->has_rows()) return list;
  BlockedParams params = packed.front();
  params.packed = 0;
  list.push_back(params);
  return list;
}

std::string BlockedConv2d::pack_key(const Problem&, const Tuning& tuning) const {
  const auto params = BlockedParams::of(tuning);
  return params.packed != 0 ? "panel " + std::to_string(params.panel) : "bias";
}

Packing BlockedConv2d::packing(const Problem& problem, const Tuning& tuning) const {
  const ConvDirectShape shape = direct_shape(conv2d_params(problem));
  Packing packing;
  if (checked(tuning).packed != 0) {
    packing.add("weights", conv_direct_packed_size(shape, block()), DType::float32,
                problem.layer->weight("weight")->elements());
  }
  add_bias(packing, *problem.layer, conv_direct_bias_size(shape, block()));
  return packing;
}

void BlockedConv2d::pack(const Problem& problem, const Tuning& tuning, Packed& to) const {
  const BlockedParams params = checked(tuning);
  if (params.packed != 0) {
    const HeldRows rows(*problem.layer->weight("weight"));
    conv_direct_kernels(info().isa)
        ->pack(direct_shape(conv2d_params(problem)), params.panel, {rows.values(), rows.factors()},
               to.at<float>("weights"));
  }
  pack_bias(*problem.layer, to);
}

std::unique_ptr<const Prepared> BlockedConv2d::prepare(const Problem& problem, const Tuning& tuning,
                                                       std::shared_ptr<const Packed> packed) const {
  return std::make_unique<PreparedBlocked>(problem, *conv_direct_kernels(info().isa), checked(tuning),
                                           std::move(packed));
}

}  // namespace softneuro
