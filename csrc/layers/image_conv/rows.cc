// image_conv a few rows at a time: the bytes of those that some output rows need become reals in the task's scratch,
// where a convolution reads them. Any routine of conv2d for first layers that can be asked for rows makes one of these.
#include <algorithm>
#include <cmath>

#include "kernels/scale_bytes/scale_bytes.h"
#include "layers/conv2d/first.h"
#include "layers/conv2d/rows.h"
#include "layers/image_conv/image_conv.h"

namespace softneuro {
namespace {

// The stages with the convolution's problem; stays where it is, as that points into it.
struct Stages {
  ImageConvStages layers;
  Problem conv;

  explicit Stages(const Problem& problem) : layers(image_conv_stages(*problem.layer, problem.in[0])) {
    conv = {&layers.conv, {layers.image}, problem.outs, 1};
  }
  Stages(const Stages&) = delete;
  Stages& operator=(const Stages&) = delete;
};

// What becomes of bytes: what pipelines do to images is a line for each channel.
class ByteScale {
 public:
  ByteScale(const float* values, int64_t channels, Isa isa) : kernel_(scale_bytes_kernel(isa)), values_(values) {
    for (int64_t c = 0; c < channels; ++c) add_line(values + c * byte_values);
  }

  // Pixels to planes.
  void run(ScaleBytesArgs call) const {
    call.scale = scale_.data();
    call.shift = shift_.data();
    call.channels = static_cast<int>(scale_.size());
    if (lines_) return kernel_(call);
    for (int c = 0; c < call.channels; ++c) {
      for (int64_t i = 0; i < call.pixels; ++i) {
        call.dst[c * call.pixels + i] = values_[c * byte_values + call.src[i * call.pixel + c * call.channel]];
      }
    }
  }

 private:
  void add_line(const float* values) {
    const double first = values[0], slope = (values[byte_values - 1] - first) / (byte_values - 1);
    // A rounding of each value, of the slope and of the sum.
    const double close = 0x1p-22 * std::max(std::abs(first), std::abs(static_cast<double>(values[byte_values - 1])));
    for (int64_t i = 0; i < byte_values; ++i) {
      const bool on_line = std::abs(first + slope * static_cast<double>(i) - values[i]) <= close;
      lines_ = lines_ && on_line && std::isfinite(slope);
    }
    scale_.push_back(static_cast<float>(slope));
    shift_.push_back(values[0]);
  }

  ScaleBytesKernel kernel_;
  const float* values_;
  std::vector<float> scale_, shift_;  // by channel
  bool lines_ = true;                 // else values_ are looked up
};

// Output rows whose reals are made at once: whole steps of the convolution, whose beginnings and ends cost time, as
// many as leave most of L2 to what else it reads and writes.
int64_t band_rows(const Conv2dParams& p, int64_t step) {
  const int64_t budget = l2_bytes() / 16 / static_cast<int64_t>(sizeof(float));
  int64_t rows = step;
  while (rows < p.oh && p.c * most_rows_below(p, rows + step) * p.w <= budget) rows += step;
  return std::min(rows, p.oh);
}

class PreparedImageConv final : public PreparedConv2dRows {
 public:
  PreparedImageConv(const Problem& problem, const Stages& stages, const RoutineInfo& info, int rows,
                    std::unique_ptr<const Prepared> conv, std::shared_ptr<const Packed> packed)
      : PreparedConv2dRows(problem, std::move(packed)),
        owner_(std::move(conv)),
        conv_(dynamic_cast<const PreparedConv2dRows&>(*owner_)),
        p_(stages.layers.params()),
        scale_(packed_->at<float>("values"), p_.c, vectors_of(info.isa)),
        block_(info.out.layout.block) {
    if (info.in.layout == Layout::nhwc()) pixel_ = p_.c, channel_ = 1;
    if (p_.empty()) return;
    rows_ = band_rows(p_, rows);
    split_ = WorkSplit(p_.n, 1, p_.oh, worth_threads(p_, problem.threads), SplitBy::rows, 1);
  }

  WorkspaceSize workspace() const override { return {.task = rows_scratch(p_.oh), .tasks = split_.tasks}; }

  void run(const RunArgs& args) const override {
    for_pieces(args, [&](int64_t image, Range, Range rows, std::byte* scratch) {
      run_rows({.src = args.in[0].at(image * args.in[0].strides[0]),
                .dst = args.out.f32() + image * args.out.strides[0] + rows.begin * p_.ow * block_,
                .rows = rows,
                .plane_rows = p_.oh,
                .scratch = scratch});
    });
  }

  size_t rows_scratch(int64_t plane_rows) const override {
    return p_.empty() ? 0 : image_bytes() + round_to_line(conv_.rows_scratch(plane_rows));
  }
  void run_rows(const Conv2dRows& call) const override {
    auto* image = reinterpret_cast<float*>(call.scratch);
    for (int64_t row = call.rows.begin; row < call.rows.end; row += rows_) {
      const Range rows{row, std::min(row + rows_, call.rows.end)}, need = rows_below(p_, rows.begin, rows.end);
      scale_.run({.src = static_cast<const uint8_t*>(call.src) + need.begin * p_.w * pixel_,
                  .pixel = pixel_,
                  .channel = channel_,
                  .dst = image,
                  .pixels = (need.end - need.begin) * p_.w});
      conv_.run_rows({.src = image,
                      .src_rows = need,
                      .dst = call.dst + (row - call.rows.begin) * p_.ow * block_,
                      .rows = rows,
                      .plane_rows = call.plane_rows,
                      .scratch = call.scratch + image_bytes()});
    }
  }

 private:
  // Size of the reals that a band of output rows needs.
  size_t image_bytes() const {
    return round_to_line(static_cast<size_t>(p_.c * most_rows_below(p_, rows_) * p_.w) * sizeof(float));
  }

  std::unique_ptr<const Prepared> owner_;
  const PreparedConv2dRows& conv_;
  Conv2dParams p_;
  ByteScale scale_;
  int64_t block_;
  int64_t pixel_ = 1, channel_ = p_.h * p_.w;  // bytes from one to the next
  int64_t rows_ = 1;                           // of the output, of a band
};

class ImageConvRows final : public Routine {
 public:
  ImageConvRows(std::unique_ptr<const Routine> conv, const Layout& layout)
      : Routine([&] {
          RoutineInfo info = conv->info();
          info.layer_type = "image_conv";
          info.in = {Platform::cpu, DType::uint8, layout};
          return info;
        }()),
        conv_(std::move(conv)) {}

  Refusal check(const Problem& problem) const override {
    if (problem.layer->post.residual) return "takes no residual";
    const Stages stages(problem);
    const Conv2dParams p = stages.layers.params();
    if (static_cast<size_t>(p.c * most_rows_below(p, 1) * p.w) * sizeof(float) > most_scratch / 4) {
      return "an output row's rows are more than 64 MiB";
    }
    return conv_->check(stages.conv);
  }
  bool promising(const Problem& problem) const override { return conv_->promising(Stages(problem).conv); }
  std::vector<std::string> param_names() const override { return conv_->param_names(); }
  std::vector<Tuning> tunings(const Problem& problem) const override { return conv_->tunings(Stages(problem).conv); }

  std::string pack_key(const Problem& problem, const Tuning& tuning) const override {
    return conv_->pack_key(Stages(problem).conv, tuning);
  }
  Packing packing(const Problem& problem, const Tuning& tuning) const override {
    const Stages stages(problem);
    const int64_t values = stages.layers.image.shape[1] * byte_values;
    return Packing().add("values", values).add("conv", conv_->packing(stages.conv, tuning));
  }
  void pack(const Problem& problem, const Tuning& tuning, Packed& to) const override {
    const ConstantData& values = *problem.layer->weight("values");
    std::copy_n(values.values().get(), values.elements(), to.at<float>("values"));
    Packed conv = to.part("conv");
    conv_->pack(Stages(problem).conv, tuning, conv);
  }
  std::unique_ptr<const Prepared> prepare(const Problem& problem, const Tuning& tuning,
                                          std::shared_ptr<const Packed> packed) const override {
    const Stages stages(problem);
    auto conv = conv_->prepare(stages.conv, tuning, part_of(packed, "conv"));
    return std::make_unique<PreparedImageConv>(problem, stages, info(), FirstParams::of(tuning).rows, std::move(conv),
                                               std::move(packed));
  }

  double expected_error(const Problem& problem, const Tuning& tuning) const override {
    return conv_->expected_error(Stages(problem).conv, tuning);
  }

 private:
  std::unique_ptr<const Routine> conv_;
};

}  // namespace

void image_conv_rows(RoutineList& list) {
  for (const Layout& layout : {Layout::nchw(), Layout::nhwc()}) {
    RoutineList convs;
    conv2d_first(convs);
    conv2d_first_winograd(convs);
    conv2d_first_bfloat16(convs);
    for (auto& conv : convs.take()) list.add<ImageConvRows>(std::move(conv), layout);
  }
}

}  // namespace softneuro
