// 1x1 convolution of any stride on nchw{c}c blobs with the weights read where the model has them. Strips of pixels are
// turned so that pixels are in the lanes, first by all threads together, then multiplied by each thread's own weights.
#include <algorithm>
#include <vector>

#include "kernels/conv_broadcast/conv_broadcast.h"
#include "layers/contract/params.h"
#include "layers/conv2d/shapes.h"
#include "layers/weights/held_rows.h"

namespace softneuro {
namespace {

SN_PARAMS(BroadcastParams, strips);

class PreparedBroadcast final : public Prepared {
 public:
  PreparedBroadcast(const Problem& problem, const ConvBroadcastKernels& kernels, int64_t strips)
      : kernels_(kernels),
        weight_(*problem.layer->weight("weight")),
        residual_(problem.layer->post.residual),
        p_(conv2d_params(problem)) {
    const int block = kernels.block;
    args_.in_channels = static_cast<int>(p_.c);
    args_.out_channels = static_cast<int>(p_.k);
    args_.strips = {static_cast<int>(p_.oh * p_.ow), block, kernels.max_vectors};
    args_.weights = weight_.values();
    const auto padded = [&](const float* values) {
      std::vector<float> copy(static_cast<size_t>(round_up(args_.out_channels, block)));
      std::copy_n(values, p_.k, copy.begin());
      return copy;
    };
    if (weight_.factors() != nullptr) factors_ = padded(weight_.factors()), args_.factors = factors_.data();
    if (const Constant* bias = problem.layer->find_weight("bias")) {
      bias_ = padded((*bias)->values().get()), args_.epilogue.bias = bias_.data();
    }
    args_.src_plane = static_cast<size_t>(p_.h * p_.w * block);
    args_.src_row = static_cast<size_t>(p_.sh * p_.w * block);
    args_.src_pixel = static_cast<size_t>(p_.sw * block);
    args_.out_w = static_cast<int>(p_.ow);
    args_.epilogue.activation = problem.layer->post.activation;
    if (p_.empty()) return;
    all_strips_ = p_.n * args_.strips.count;
    strips_ = std::min(strips, all_strips_);
    in_blocks_ = ceil_div(p_.c, block);
    out_blocks_ = ceil_div(p_.k, block);
    strip_size_ = static_cast<int64_t>(conv_broadcast_strip_size(args_.in_channels, block, kernels.max_vectors));
    tasks_ = std::min<int64_t>(worth_threads(p_, problem.threads), out_blocks_);
  }

  bool works_on_residual() const override { return true; }
  WorkspaceSize workspace() const override {
    return {.shared = static_cast<size_t>(strips_ * strip_size_) * sizeof(float)};
  }

  void run(const RunArgs& args) const override {
    ConvBroadcastArgs call = args_;
    call.src = args.in[0].f32();
    call.src_image = static_cast<size_t>(args.in[0].strides[0]);
    call.dst = args.out.f32();
    call.dst_image = static_cast<size_t>(args.out.strides[0]);
    if (residual_) {
      call.epilogue.residual = args.in[1].f32();
      call.residual_image = static_cast<size_t>(args.in[1].strides[0]);
    }
    auto* columns = reinterpret_cast<float*>(args.workspace.shared());
    for (int64_t begin = 0; begin < all_strips_; begin += strips_) {
      const int64_t end = std::min(begin + strips_, all_strips_), blocks = (end - begin) * in_blocks_;
      args.parallel_for(std::min(tasks_, blocks), [&](int64_t task) {
        const Range part = split_range(blocks, std::min(tasks_, blocks), task);
        for (int64_t at = part.begin, next; at < part.end; at = next) {
          const int64_t strip = at / in_blocks_, first = at % in_blocks_;
          next = std::min(part.end, (strip + 1) * in_blocks_);
          kernels_.turn(call, static_cast<int>(begin + strip), static_cast<int>(first),
                        static_cast<int>(first + next - at), columns + strip * strip_size_);
        }
      });
      args.parallel_for(tasks_, [&](int64_t task) {
        const Range part = split_range(out_blocks_, tasks_, task);
        kernels_.run(call, static_cast<int>(begin), static_cast<int>(end), static_cast<int>(part.begin),
                     static_cast<int>(part.end), columns);
      });
    }
  }

 private:
  const ConvBroadcastKernels& kernels_;
  HeldRows weight_;
  bool residual_;
  Conv2dParams p_;
  std::vector<float> factors_, bias_;
  ConvBroadcastArgs args_;
  int64_t all_strips_ = 0, strips_ = 0;  // of all images, and turned at a time
  int64_t in_blocks_ = 0, out_blocks_ = 0, strip_size_ = 0, tasks_ = 0;
};

class BroadcastConv2d final : public Routine {
 public:
  explicit BroadcastConv2d(Isa isa)
      : Routine({.layer_type = "conv2d",
                 .algorithm = "broadcast",
                 .isa = isa,
                 .in = f32_blocked(isa_block(isa)),
                 .out = f32_blocked(isa_block(isa))}) {}

  Refusal check(const Problem& problem) const override {
    const Conv2dParams p = conv2d_params(problem);
    const Refusal refusal = check_pointwise(p);
    return refusal.accepted() ? check_kernel_outputs(p.n * p.oh * p.ow) : refusal;
  }

  // Where there are fewer pixels to turn, of input and output, than weights.
  bool promising(const Problem& problem) const override {
    const Conv2dParams p = conv2d_params(problem);
    return problem.layer->weight("weight")->has_rows() && p.n * p.oh * p.ow * (p.c + p.k) < p.c * p.k;
  }

  std::vector<std::string> param_names() const override { return BroadcastParams::names(); }
  // Turned strips should stay in L2.
  std::vector<Tuning> tunings(const Problem& problem) const override {
    const Conv2dParams p = conv2d_params(problem);
    const auto bytes = static_cast<int64_t>(
        conv_broadcast_strip_size(static_cast<int>(p.c), kernels().block, kernels().max_vectors) * sizeof(float));
    const int64_t fit = l2_bytes() / 2 / std::max<int64_t>(bytes, 1);
    return {BroadcastParams{static_cast<int>(std::clamp<int64_t>(fit, 1, 1 << 10))}};
  }

  std::unique_ptr<const Prepared> prepare(const Problem& problem, const Tuning& tuning,
                                          std::shared_ptr<const Packed>) const override {
    const int strips = parse_positive("strips", BroadcastParams::of(tuning).strips);
    return std::make_unique<PreparedBroadcast>(problem, kernels(), strips);
  }

 private:
  const ConvBroadcastKernels& kernels() const { return *conv_broadcast_kernels(info().isa); }
};

}  // namespace

void conv2d_broadcast(RoutineList& list) {
  for (Isa isa : all_isas()) list.add<BroadcastConv2d>(isa);
}

}  // namespace softneuro
