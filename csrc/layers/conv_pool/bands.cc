// conv_pool in bands of output rows: the convolution's rows are pooled while they are in the second cache. Any routine
// of conv2d or image_conv that can be asked for rows makes one of these.
#include <algorithm>
#include <numeric>

#include "layers/conv2d/row_bands.h"
#include "layers/conv2d/shapes.h"
#include "layers/conv_pool/conv_pool.h"
#include "layers/image_conv/image_conv.h"
#include "layers/pool2d/windows.h"
#include "layers/shared/images.h"

namespace softneuro {
namespace {

// The stages with their problems; stays where it is, as the problems point into it.
struct Stages {
  ConvPoolStages layers;
  Problem conv, pool;
  Conv2dParams params;

  explicit Stages(const Problem& problem) : layers(conv_pool_stages(*problem.layer, problem.in[0])) {
    conv = {&layers.conv, problem.in, layers.between, 1};
    params = conv_params(layers.conv, problem.in[0]);
    pool = {&layers.pool, {layers.between}, problem.out(), 1};
  }
  Stages(const Stages&) = delete;
  Stages& operator=(const Stages&) = delete;
};

// Rows of the convolution that any `rows` rows of windows need.
int64_t most_rows_below(const Stages& stages, int64_t rows) {
  const PoolGeometry axis = pool2d_params(stages.layers.pool).axes[0];
  return std::min(stages.layers.between.shape[2], (rows - 1) * axis.stride + axis.kernel);
}

class PreparedBands final : public PreparedSplit {
 public:
  PreparedBands(const Problem& problem, const Stages& stages, Isa isa, int rows, std::unique_ptr<const Prepared> conv)
      : PreparedSplit(problem),
        band_(std::move(conv)),
        kernel_(pool_kernels(isa).lanes),
        windows_(pool2d_windows(stages.pool)),
        block_(isa_block(isa)) {
    const Shape &between = stages.layers.between.shape, &out = problem.out().shape;
    width_ = between[3], out_height_ = out[2], out_width_ = out[3];
    if (out.elements() == 0) return;
    blocks_ = ceil_div(out[1], block_);
    // Bands after the first begin where one ended: in whole steps of the convolution, they waste nothing.
    const int64_t stride = pool2d_params(stages.layers.pool).axes[0].stride;
    const int64_t whole = band_.row_step() / std::gcd(band_.row_step(), stride);
    rows_ = std::min(round_up(rows, whole), out_height_);
    const int threads = worth_threads(stages.params, problem.threads);
    split_ = WorkSplit(out[0], 1, out_height_, threads, SplitBy::rows, band_.unit());
    band_.set_size(blocks_, width_ * block_, most_rows_below(stages, rows_));
    scratch_ = band_.bytes();
  }

  void run(const RunArgs& args) const override {
    for_row_bands(args, split_, [&](int64_t image, Range rows, KeptRows& kept, std::byte* scratch) {
      run_rows(args.in[0].at(image * args.in[0].strides[0]), output_image(args, image), rows, kept, scratch);
    });
  }

 private:
  void run_rows(const void* src, float* dst, Range rows, KeptRows& kept, std::byte* scratch) const {
    const auto& spans = windows_.rows.spans;
    for (int64_t row = rows.begin; row < rows.end; row += rows_) {
      const int64_t end = std::min(row + rows_, rows.end);
      const PoolSpan &first = spans[static_cast<size_t>(row)], &last = spans[static_cast<size_t>(end - 1)];
      const Range need{first.begin, last.begin + last.count};
      const float* const planes = band_.fill(src, need, kept, scratch);
      for (int64_t b = 0; b < blocks_; ++b) {
        for (int64_t y = row; y < end; ++y) {
          pool_row(planes + b * band_.plane(), need.begin, y, dst + (b * out_height_ + y) * out_width_ * block_);
        }
      }
    }
  }

  // Output row y out of a plane that begins with row `top` of the convolution.
  void pool_row(const float* plane, int64_t top, int64_t y, float* dst) const {
    const PoolAxis& cols = windows_.cols;
    const PoolSpan span = windows_.rows.spans[static_cast<size_t>(y)];
    kernel_({.src = plane + (span.begin - top) * width_ * block_,
             .row_stride = width_ * block_,
             .rows = span.count,
             .pixel = block_,
             .dilation = 1,
             .spans = cols.spans.data(),
             .outputs = out_width_,
             .dst = dst,
             .dst_pixel = block_,
             .channels = block_,
             .is_max = windows_.is_max,
             .scale = cols.scale.data(),
             .row_scale = windows_.rows.scale[static_cast<size_t>(y)],
             .step = cols.step,
             .inner_begin = cols.inner_begin,
             .inner_end = cols.inner_end,
             .width = width_,
             .scratch = nullptr});
  }

  ConvBand band_;
  PoolKernel kernel_;
  PoolWindows windows_;
  int64_t block_, blocks_ = 0;
  int64_t width_ = 0, out_height_ = 0, out_width_ = 0;  // of the convolution's and of the pooled image
  int64_t rows_ = 1;                                    // pooled, of a band
};

class ConvPoolBands final : public RowBandsRoutine<Stages> {
 public:
  explicit ConvPoolBands(std::unique_ptr<const Routine> conv) : RowBandsRoutine("conv_pool", std::move(conv)) {}

  Refusal check(const Problem& problem) const override {
    if (!problem.layer->post.empty()) return "takes no post-ops";
    const Stages stages(problem);
    if (conv().info().layer_type != stages.layers.conv.type) return "its first stage is a " + stages.layers.conv.type;
    const Pool2dParams pool = pool2d_params(stages.layers.pool);
    if (pool.axes[0].dilation != 1 || pool.axes[1].dilation != 1) return "has a dilated window";
    constexpr int64_t most = int64_t{64} << 20;
    if (row_bytes(stages) * most_rows_below(stages, 1) > most) return "a window's rows are more than 64 MiB";
    return conv().check(stages.conv);
  }

  // Pooled rows of a band, rounded up to what suits the convolution.
  std::vector<Tuning> tunings(const Problem& problem) const override {
    const Stages stages(problem);
    // The band should leave room in L2 for what surrounds it.
    const int64_t budget = l2_bytes() / 2;
    int band = 1;
    while (band < 32 && band < problem.out().shape[2] &&
           row_bytes(stages) * most_rows_below(stages, band + 1) <= budget) {
      ++band;
    }
    std::vector<Tuning> list;
    for (Tuning& tuning : conv().tunings(stages.conv)) list.push_back(BandTuning{band, std::move(tuning)});
    return list;
  }

  Packing packing(const Problem& problem, const Tuning& tuning) const override {
    return conv().packing(Stages(problem).conv, BandTuning::of(tuning).conv);
  }
  void pack(const Problem& problem, const Tuning& tuning, Packed& to) const override {
    conv().pack(Stages(problem).conv, BandTuning::of(tuning).conv, to);
  }
  std::unique_ptr<const Prepared> prepare(const Problem& problem, const Tuning& tuning,
                                          std::shared_ptr<const Packed> packed) const override {
    const Stages stages(problem);
    const auto params = BandTuning::of(tuning);
    return std::make_unique<PreparedBands>(problem, stages, vectors_of(info().isa), params.band,
                                           conv().prepare(stages.conv, params.conv, std::move(packed)));
  }

 private:
  int64_t row_bytes(const Stages& stages) const {
    const Shape& shape = stages.layers.between.shape;
    const int64_t block = info().out.layout.block;
    return round_up(shape[1], block) * shape[3] * static_cast<int64_t>(sizeof(float));
  }
};

}  // namespace

void conv_pool_bands(RoutineList& list) {
  RoutineList convs;
  conv2d_first(convs);
  conv2d_first_winograd(convs);
  conv2d_first_bfloat16(convs);
  conv2d_winograd(convs);
  image_conv_rows(convs);
  for (auto& conv : convs.take()) list.add<ConvPoolBands>(std::move(conv));
}

}  // namespace softneuro
