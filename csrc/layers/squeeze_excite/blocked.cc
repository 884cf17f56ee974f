// squeeze_excite on blocked blobs, dealt to threads by channel blocks: what a thread has averaged it multiplies at once
// with its columns of the first matrix, so that two calls of the pool do for all four steps.
#include <algorithm>
#include <limits>

#include "kernels/integers.h"
#include "kernels/squeeze_excite/squeeze_excite.h"
#include "layers/conv2d/split.h"
#include "layers/packed_floats.h"
#include "layers/squeeze_excite/squeeze_excite.h"

namespace softneuro {
namespace {

// Where everything is in the packed floats.
struct Packing {
  int64_t squeeze, squeeze_bias, excite, excite_bias, size;

  Packing(const SqueezeExciteParams& p, int block) {
    const int64_t channels = (p.c + block - 1) / block * block, hidden = (p.hidden + block - 1) / block * block;
    squeeze = 0;
    squeeze_bias = squeeze + hidden * p.c;
    excite = squeeze_bias + hidden;
    excite_bias = excite + channels * p.hidden;
    size = excite_bias + channels;
  }
};

class PreparedSqueezeExcite final : public Prepared {
 public:
  PreparedSqueezeExcite(const Problem& problem, const SqueezeExciteKernels& kernels,
                        std::shared_ptr<const Packed> packed)
      : packed_(std::move(packed)), kernels_(kernels), residual_(problem.layer->post.residual) {
    const SqueezeExciteParams p = squeeze_excite_params(*problem.layer, problem.in[0]);
    if (p.empty()) return;
    const Packing at(p, kernels.block);
    const float* weights = packed_floats(packed_.get());
    args_ = {.channels = static_cast<int>(p.c),
             .hidden = static_cast<int>(p.hidden),
             .pixels = static_cast<int>(p.pixels),
             .squeeze = weights + at.squeeze,
             .squeeze_bias = weights + at.squeeze_bias,
             .excite = weights + at.excite,
             .excite_bias = weights + at.excite_bias,
             .squeeze_activation = p.squeeze,
             .excite_activation = p.excite,
             .epilogue = {.activation = problem.layer->post.activation}};
    images_ = p.n;
    blocks_ = ceil_div(args_.channels, kernels.block);
    const auto matrices = static_cast<double>(2 * p.c * p.hidden), blob = static_cast<double>(p.c * p.pixels);
    const auto images = static_cast<double>(p.n);
    const int threads =
        worth_threads(2 * images * (matrices + blob), 4 * (images * 3 * blob + matrices), problem.threads);
    whole_images_ = p.n % threads == 0 || p.n >= 4 * threads;
    tasks_ = static_cast<int>(std::min<int64_t>(threads, whole_images_ ? p.n : blocks_));
    // Rows of a line each, so that threads do not write to each other's lines.
    const int line = 64 / static_cast<int>(sizeof(float));
    means_ = round_up(blocks_ * kernels.block, line);
    hidden_ = round_up(args_.hidden, kernels.block);
    scratch_ = round_up(hidden_, line);
  }

  // Of each task: the means, the hidden values; and its part of the hidden sums, all parts in one piece.
  WorkspaceSize workspace() const override {
    return {.shared = static_cast<size_t>(tasks_) * static_cast<size_t>(means_ + scratch_ + hidden_) * sizeof(float)};
  }

  void run(const RunArgs& args) const override {
    auto* means = reinterpret_cast<float*>(args.workspace.shared());
    float* scratch = means + int64_t{tasks_} * means_;
    float* parts = scratch + int64_t{tasks_} * scratch_;
    if (whole_images_) {
      args.parallel_for(tasks_, [&](int64_t task) {
        const Range images = split_range(images_, tasks_, task);
        for (int64_t image = images.begin; image < images.end; ++image) {
          const SqueezeExciteArgs call = call_for(args, image);
          kernels_.squeeze(call, 0, blocks_, means + task * means_, parts + task * hidden_);
          kernels_.excite(call, parts + task * hidden_, 1, scratch + task * scratch_, 0, blocks_);
        }
      });
      return;
    }
    for (int64_t image = 0; image < images_; ++image) {
      const SqueezeExciteArgs call = call_for(args, image);
      args.parallel_for(tasks_, [&](int64_t task) {
        const auto [begin, end] = share(task);
        kernels_.squeeze(call, begin, end, means + task * means_, parts + task * hidden_);
      });
      args.parallel_for(tasks_, [&](int64_t task) {
        const auto [begin, end] = share(task);
        kernels_.excite(call, parts, tasks_, scratch + task * scratch_, begin, end);
      });
    }
  }

 private:
  std::pair<int, int> share(int64_t task) const {
    const Range blocks = split_range(blocks_, tasks_, task);
    return {static_cast<int>(blocks.begin), static_cast<int>(blocks.end)};
  }

  SqueezeExciteArgs call_for(const RunArgs& args, int64_t image) const {
    SqueezeExciteArgs call = args_;
    call.src = args.in[0].f32() + image * args.in[0].strides[0];
    call.dst = args.out.f32() + image * args.out.strides[0];
    if (residual_) call.epilogue.residual = args.in[1].f32() + image * args.in[1].strides[0];
    return call;
  }

  std::shared_ptr<const Packed> packed_;
  const SqueezeExciteKernels& kernels_;
  bool residual_;
  SqueezeExciteArgs args_;
  int64_t images_ = 0;
  bool whole_images_ = false;  // to a task; else all tasks share each image
  int blocks_ = 0, tasks_ = 0;
  int means_ = 0, scratch_ = 0, hidden_ = 0;  // floats of a task
};

class BlockedSqueezeExcite final : public Routine {
 public:
  explicit BlockedSqueezeExcite(Isa isa)
      : Routine({.layer_type = "squeeze_excite",
                 .algorithm = "fused",
                 .isa = isa,
                 .in = f32_blocked(isa_block(isa)),
                 .out = f32_blocked(isa_block(isa)),
                 .inplace_input = 0}) {}

  Refusal check(const Problem& problem) const override {
    const SqueezeExciteParams p = squeeze_excite_params(*problem.layer, problem.in[0]);
    constexpr int64_t limit = std::numeric_limits<int32_t>::max() / 64;  // room for blocks and for sums of offsets
    return std::max({p.c, p.hidden, p.pixels}) < limit ? Refusal() : "sizes are beyond the kernels' 32-bit offsets";
  }

  std::shared_ptr<const Packed> pack(const Problem& problem, const Tuning&) const override {
    const SqueezeExciteParams p = squeeze_excite_params(*problem.layer, problem.in[0]);
    const Layer& layer = *problem.layer;
    const int block = info().in.layout.block;
    const Packing at(p, block);
    auto packed = std::make_shared<PackedFloats>(at.size);
    float* to = packed->data();
    std::fill_n(to, at.size, 0.0f);
    const auto stage = [&](const std::string& role, int64_t rows, int64_t columns, int64_t place, int64_t bias_place) {
      squeeze_excite_pack(static_cast<int>(rows), static_cast<int>(columns), block,
                          layer.weight(role + "_weight")->values().get(), to + place);
      if (const Constant* bias = layer.find_weight(role + "_bias")) {
        std::copy_n((*bias)->values().get(), rows, to + bias_place);
      }
    };
    stage("squeeze", p.hidden, p.c, at.squeeze, at.squeeze_bias);
    stage("excite", p.c, p.hidden, at.excite, at.excite_bias);
    return packed;
  }

  std::unique_ptr<const Prepared> prepare(const Problem& problem, const Tuning&,
                                          std::shared_ptr<const Packed> packed) const override {
    return std::make_unique<PreparedSqueezeExcite>(problem, *squeeze_excite_kernels(info().isa), std::move(packed));
  }
};

}  // namespace

void squeeze_excite_blocked(RoutineList& list) {
  for (Isa isa : all_isas()) list.add<BlockedSqueezeExcite>(isa);
}

}  // namespace softneuro
