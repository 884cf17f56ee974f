#include "layers/conv2d/blocked.h"

#include <algorithm>
#include <array>
#include <limits>

#include "base/error.h"
#include "kernels/integers.h"
#include "layers/gemm_tasks.h"
#include "layers/held_rows.h"
#include "layers/packed_floats.h"

namespace softneuro {
namespace {

// Floats before the biases.
size_t packed_weights(const ConvDirectShape& shape, int block, bool is_packed) {
  return is_packed ? conv_direct_packed_size(shape, block) : 0;
}

class PreparedBlocked final : public Prepared {
 public:
  PreparedBlocked(const Problem& problem, const ConvDirectKernels& kernels, const ConvDirectTiling& tiling, SplitBy by,
                  bool is_packed, std::shared_ptr<const Packed> packed)
      : packed_(std::move(packed)), kernels_(kernels), residual_(problem.layer->post.residual) {
    const Conv2dParams p = conv2d_params(problem);
    const ConvDirectShape shape = direct_shape(p);
    args_.shape = shape;
    args_.tiling = tiling;
    args_.weights = packed_floats(packed_.get());
    args_.epilogue.activation = problem.layer->post.activation;
    if (problem.layer->find_weight("bias") != nullptr) {
      args_.epilogue.bias = args_.weights + packed_weights(shape, kernels.block, is_packed);
    }
    if (!is_packed) {
      rows_ = HeldRows(*problem.layer->weight("weight"));
      args_.rows = {rows_.values(), rows_.factors()};
    }
    if (p.empty()) return;
    const int64_t rows = shape.pointwise() ? p.oh * p.ow : p.oh;
    split_ = WorkSplit(p.n, conv_direct_panels(shape, kernels.block, tiling.panel), rows,
                       worth_threads(p, problem.threads), by, unit(shape, by, is_packed));
    if (!shape.pointwise()) scratch_ = round_to_line(kernels.scratch_bytes(shape, tiling));
    if (!is_packed) {
      panel_ = round_to_line(conv_direct_panel_size(shape, kernels.block, tiling.panel) * sizeof(float));
    }
  }

  // Partial sums would overwrite it.
  bool works_on_residual() const override {
    return ceil_div(args_.shape.in_channels, kernels_.block) <= args_.tiling.c_block;
  }
  WorkspaceSize workspace() const override { return {.task = scratch_ + panel_, .tasks = split_.tasks}; }

  void run(const RunArgs& args) const override {
    SharedWork work(split_);
    args.parallel_for(split_.tasks, [&](int64_t task) {
      std::byte* scratch = args.workspace.task(task);
      work.for_task(task, [&](int64_t image, Range panels, Range rows) {
        ConvDirectArgs call = args_;
        call.panel_scratch = reinterpret_cast<float*>(scratch + scratch_);
        call.src = args.in[0].f32() + image * args.in[0].strides[0];
        call.dst = args.out.f32() + image * args.out.strides[0];
        if (residual_) call.epilogue.residual = args.in[1].f32() + image * args.in[1].strides[0];
        const auto [panel_begin, panel_end, row_begin, row_end] =
            std::array{static_cast<int>(panels.begin), static_cast<int>(panels.end), static_cast<int>(rows.begin),
                       static_cast<int>(rows.end)};
        if (call.shape.pointwise()) {
          kernels_.run_pointwise(call, panel_begin, panel_end, row_begin, row_end);
        } else {
          kernels_.run(call, panel_begin, panel_end, row_begin, row_end, scratch);
        }
      });
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

  std::shared_ptr<const Packed> packed_;
  HeldRows rows_;
  const ConvDirectKernels& kernels_;
  ConvDirectArgs args_{};
  WorkSplit split_;
  bool residual_;
  size_t scratch_ = 0, panel_ = 0;  // bytes of a task
};

bool parse_packed(int value) {
  if (value != 0 && value != 1) throw Error("packed must be 0 or 1, not " + std::to_string(value));
  return value != 0;
}

ConvDirectTiling tiling_of(const Tuning& tuning, int max_panel) {
  const ConvDirectTiling tiling{tuning[0], tuning[1], tuning[2]};
  if (tiling.panel < 1 || tiling.panel > max_panel || tiling.row_block < 1 || tiling.c_block < 1) {
    throw Error("panel must be in [1, " + std::to_string(max_panel) + "], rows and c_block positive");
  }
  return tiling;
}

}  // namespace

Conv2dParams conv2d_params(const Problem& problem) { return conv2d_params(*problem.layer, problem.in[0]); }

Refusal check_int_sizes(const Conv2dParams& p) {
  constexpr int64_t limit = std::numeric_limits<int32_t>::max() / 64;  // room for blocks and for sums of offsets
  const int64_t taps = std::max({p.kh * p.kw, p.kh * p.dh, p.kw * p.dw, p.sh, p.sw});
  const int64_t sides = std::max({p.h + p.pt + p.pb, p.w + p.pl + p.pr, p.h * p.w, p.oh * p.ow, p.c, p.k});
  return std::max(taps, sides) < limit ? Refusal() : Refusal("sizes are beyond the kernels' 32-bit offsets");
}

int worth_threads(const Conv2dParams& p, int threads) {
  const auto outputs = static_cast<double>(p.n * p.k * p.oh * p.ow),
             inputs = static_cast<double>(p.n * p.c * p.h * p.w);
  const auto filter = static_cast<double>(p.group_c() * p.kh * p.kw);
  return worth_threads(2 * outputs * filter, 4 * (outputs + inputs + static_cast<double>(p.k) * filter), threads);
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

void BlockedConv2d::add_unpacked(const Problem& problem, std::vector<Tuning>& list) const {
  if (!problem.layer->weight("weight")->has_rows()) return;
  Tuning tuning = list.front();
  tuning[4] = 0;
  list.push_back(std::move(tuning));
}

// Without the padding to whole blocks, which would keep the smallest models from their best routines.
size_t BlockedConv2d::packed_bytes(const Problem& problem, const Tuning& tuning) const {
  if (parse_packed(tuning[4])) return Routine::packed_bytes(problem, tuning);
  const Constant* bias = problem.layer->find_weight("bias");
  return bias == nullptr ? 0 : static_cast<size_t>((*bias)->elements()) * sizeof(float);
}

std::shared_ptr<const Packed> BlockedConv2d::pack(const Problem& problem, const Tuning& tuning) const {
  const int panel = tiling_of(tuning, max_panel()).panel;
  const bool is_packed = parse_packed(tuning[4]);
  const ConvDirectShape shape = direct_shape(conv2d_params(problem));
  const Constant* bias = problem.layer->find_weight("bias");
  const size_t weights = packed_weights(shape, block(), is_packed), biases = conv_direct_bias_size(shape, block());
  auto packed = std::make_shared<PackedFloats>(static_cast<int64_t>(weights + (bias != nullptr ? biases : 0)));
  if (is_packed) {
    const HeldRows rows(*problem.layer->weight("weight"));
    conv_direct_kernels(info().isa)->pack(shape, panel, {rows.values(), rows.factors()}, packed->data());
  }
  if (bias != nullptr) {
    float* to = packed->data() + weights;
    std::fill_n(to, biases, 0.f);
    std::copy_n((*bias)->values().get(), (*bias)->elements(), to);
  }
  return packed;
}

std::unique_ptr<const Prepared> BlockedConv2d::prepare(const Problem& problem, const Tuning& tuning,
                                                       std::shared_ptr<const Packed> packed) const {
  return std::make_unique<PreparedBlocked>(problem, *conv_direct_kernels(info().isa), tiling_of(tuning, max_panel()),
                                           parse_split(tuning[3]), parse_packed(tuning[4]), std::move(packed));
}

}  // namespace softneuro
