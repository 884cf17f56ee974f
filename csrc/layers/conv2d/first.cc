#include "layers/conv2d/first.h"

#include "layers/conv2d/rows.h"
#include "layers/shared/images.h"

namespace softneuro {
namespace {

constexpr int64_t max_channels = 4;

class PreparedFirst final : public PreparedConv2dRows {
 public:
  PreparedFirst(const Problem& problem, FirstConv2d::Kernel kernel, const ConvFirstArgs& args,
                std::shared_ptr<const Packed> packed)
      : PreparedConv2dRows(problem, std::move(packed)), kernel_(kernel), args_(args) {
    const Conv2dParams p = conv2d_params(problem);
    args_.epilogue.activation = problem.layer->post.activation;
    if (p.empty()) return;
    split_ = WorkSplit(p.n, 1, p.oh, worth_threads(p, problem.threads), SplitBy::rows, 1);
    scratch_ = round_to_line(kernel.scratch_bytes(args));
  }

  void run(const RunArgs& args) const override {
    for_pieces(args, [&](int64_t image, Range, Range rows, std::byte* scratch) {
      kernel_.run(for_image(args_, args, residual_, image), static_cast<int>(rows.begin), static_cast<int>(rows.end),
                  scratch);
    });
  }

  size_t rows_scratch(int64_t plane_rows) const override { return kernel_.scratch_bytes(high(plane_rows)); }
  void run_rows(const Conv2dRows& call) const override {
    // The kernel sees an image that begins with these rows.
    ConvFirstArgs args = high(call.plane_rows);
    args.pad_top -= static_cast<int>(call.rows.begin) * args.stride_h;
    if (call.src_rows) {
      args.pad_top += static_cast<int>(call.src_rows->begin);
      args.h = static_cast<int>(call.src_rows->end - call.src_rows->begin);
    }
    args.src = static_cast<const float*>(call.src);
    args.dst = call.dst;
    kernel_.run(args, 0, static_cast<int>(call.rows.end - call.rows.begin), call.scratch);
  }

 private:
  ConvFirstArgs high(int64_t rows) const {
    ConvFirstArgs args = args_;
    args.out_h = static_cast<int>(rows);
    return args;
  }

  FirstConv2d::Kernel kernel_;
  ConvFirstArgs args_;
};

class DirectFirstConv2d final : public FirstConv2d {
 public:
  explicit DirectFirstConv2d(Isa isa)
      : FirstConv2d({.layer_type = "conv2d",
                     .algorithm = "first",
                     .isa = isa,
                     .in = f32_nchw,
                     .out = f32_blocked(isa_block(isa))}) {}

 protected:
  Kernel kernel() const override {
    const ConvFirstKernels& kernels = *conv_first_kernels(info().isa);
    return {kernels.scratch_bytes, kernels.run};
  }
  Packing weights_packing(const ConvFirstArgs& args) const override {
    const int64_t own = int64_t{args.out_channels} * args.in_channels * args.kernel_h * args.kernel_w;
    return Packing().add("weights", conv_first_packed_size(args, block()), DType::float32, own);
  }
  void pack_weights(const ConvFirstArgs& args, const float* weights, Packed& to) const override {
    conv_first_pack(args, block(), weights, to.at<float>("weights"));
  }
  int64_t copied_bytes(const Conv2dParams& p, int64_t rows) const override {
    return rows_read(p, rows) * ((p.ow - 1) * p.sw + (p.kw - 1) * p.dw + 1) * p.c * 4;
  }
};

}  // namespace

ConvFirstArgs first_args(const Conv2dParams& p) {
  const ConvDirectShape shape = direct_shape(p);
  ConvFirstArgs args;
  args.in_channels = shape.in_channels;
  args.out_channels = shape.out_channels;
  args.h = shape.h;
  args.w = shape.w;
  args.out_h = shape.out_h;
  args.out_w = shape.out_w;
  args.kernel_h = shape.kernel_h;
  args.kernel_w = shape.kernel_w;
  args.stride_h = shape.stride_h;
  args.stride_w = shape.stride_w;
  args.dilation_h = shape.dilation_h;
  args.dilation_w = shape.dilation_w;
  args.pad_top = shape.pad_top;
  args.pad_left = shape.pad_left;
  return args;
}

int64_t rows_read(const Conv2dParams& p, int64_t rows) { return (rows - 1) * p.sh + (p.kh - 1) * p.dh + 1; }

Refusal FirstConv2d::check(const Problem& problem) const {
  const Conv2dParams p = conv2d_params(problem);
  if (p.groups != 1) return "has groups";
  if (p.c > max_channels) return "has more than " + std::to_string(max_channels) + " input channels";
  return check_int_sizes(p);
}

std::vector<Tuning> FirstConv2d::tunings(const Problem& problem) const {
  // What is copied is read by each pair of output blocks and should stay in L2; less leaves more of it to the output.
  const Conv2dParams p = conv2d_params(problem);
  const auto fit = [&](int64_t budget) {
    int rows = 1;
    while (rows < p.oh && copied_bytes(p, rows + 1) <= budget) ++rows;
    return rows;
  };
  const FirstParams large{fit(l2_bytes() / 4)}, small{fit(l2_bytes() / 16)};
  if (small == large) return {large};
  return {large, small};
}

Packing FirstConv2d::packing(const Problem& problem, const Tuning&) const {
  const ConvFirstArgs args = first_args(conv2d_params(problem));
  Packing packing = weights_packing(args);
  add_bias(packing, *problem.layer, round_up(args.out_channels, block()));
  return packing;
}

void FirstConv2d::pack(const Problem& problem, const Tuning&, Packed& to) const {
  pack_weights(first_args(conv2d_params(problem)), problem.layer->weight("weight")->values().get(), to);
  pack_bias(*problem.layer, to);
}

std::unique_ptr<const Prepared> FirstConv2d::prepare(const Problem& problem, const Tuning& tuning,
                                                     std::shared_ptr<const Packed> packed) const {
  ConvFirstArgs args = first_args(conv2d_params(problem));
  args.row_block = parse_positive("rows", FirstParams::of(tuning).rows);
  args.weights = packed->section("weights");
  args.epilogue.bias = packed->find<float>("bias");
  return std::make_unique<PreparedFirst>(problem, kernel(), args, std::move(packed));
}

void conv2d_first(RoutineList& list) {
  for (Isa isa : all_isas()) list.add<DirectFirstConv2d>(isa);
}

}  // namespace softneuro
