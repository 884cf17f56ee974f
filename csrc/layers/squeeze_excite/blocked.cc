// squeeze_excite on blocked blobs, dealt to threads by channel blocks: what a thread has averaged it multiplies at once
// with its columns of the first matrix, so that two calls of the pool do for all four steps.
#include <algorithm>

#include "base/lines.h"
#include "kernels/integers.h"
#include "kernels/squeeze_excite/squeeze_excite.h"
#include "layers/shared/images.h"
#include "layers/shared/kernel_sizes.h"
#include "layers/shared/split.h"
#include "layers/squeeze_excite/squeeze_excite.h"

namespace softneuro {
namespace {

class PreparedSqueezeExcite final : public Prepared {
 public:
  PreparedSqueezeExcite(const Problem& problem, const SqueezeExciteKernels& kernels,
                        std::shared_ptr<const Packed> packed)
      : packed_(std::move(packed)), kernels_(kernels), residual_(problem.layer->post.residual) {
    const SqueezeExciteParams p = squeeze_excite_params(*problem.layer, problem.in[0]);
    if (p.empty()) return;
    args_ = {.channels = static_cast<int>(p.c),
             .hidden = static_cast<int>(p.hidden),
             .pixels = static_cast<int>(p.pixels),
             .squeeze = packed_->at<float>("squeeze.weights"),
             .squeeze_bias = packed_->at<float>("squeeze.bias"),
             .excite = packed_->at<float>("excite.weights"),
             .excite_bias = packed_->at<float>("excite.bias"),
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
    means_ = whole_lines(blocks_ * kernels.block);
    hidden_ = round_up(args_.hidden, kernels.block);
    scratch_ = whole_lines(hidden_);
  }

  // Each task has the means and the hidden values, and its part of the hidden sums, all parts in one piece.
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
          const SqueezeExciteArgs call = for_image(args_, args, residual_, image);
          kernels_.squeeze(call, 0, blocks_, means + task * means_, parts + task * hidden_);
          kernels_.excite(call, parts + task * hidden_, 1, scratch + task * scratch_, 0, blocks_);
        }
      });
      return;
    }
    for (int64_t image = 0; image < images_; ++image) {
      const SqueezeExciteArgs call = for_image(args_, args, residual_, image);
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
    return check_kernel_sizes({p.c, p.hidden, p.pixels});
  }

  Packing packing(const Problem& problem, const Tuning&) const override {
    const SqueezeExciteParams p = squeeze_excite_params(*problem.layer, problem.in[0]);
    const auto stage = [&](const char* role, int64_t rows, int64_t columns) {
      const int64_t padded = round_up(rows, info().in.layout.block);
      Packing packing;
      packing.add("weights", padded * columns, DType::float32, rows * columns);
      add_padded(packing, "bias", bias(problem, role), padded);
      return packing;
    };
    return Packing().add("squeeze", stage("squeeze", p.hidden, p.c)).add("excite", stage("excite", p.c, p.hidden));
  }
  void pack(const Problem& problem, const Tuning&, Packed& to) const override {
    const SqueezeExciteParams p = squeeze_excite_params(*problem.layer, problem.in[0]);
    const auto stage = [&](const std::string& role, int64_t rows, int64_t columns) {
      squeeze_excite_pack(narrow(rows), narrow(columns), info().in.layout.block,
                          problem.layer->weight(role + "_weight")->values().get(), to.at<float>(role + ".weights"));
      pack_padded(bias(problem, role), to, role + ".bias");
    };
    stage("squeeze", p.hidden, p.c);
    stage("excite", p.c, p.hidden);
  }

  std::unique_ptr<const Prepared> prepare(const Problem& problem, const Tuning&,
                                          std::shared_ptr<const Packed> packed) const override {
    return std::make_unique<PreparedSqueezeExcite>(problem, *squeeze_excite_kernels(info().isa), std::move(packed));
  }

 private:
  static const Constant* bias(const Problem& problem, const std::string& role) {
    return problem.layer->find_weight(role + "_bias");
  }
};

}  // namespace

void squeeze_excite_blocked(RoutineList& list) {
  for (Isa isa : all_isas()) list.add<BlockedSqueezeExcite>(isa);
}

}  // namespace softneuro
