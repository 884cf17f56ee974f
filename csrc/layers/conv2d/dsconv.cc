// Direct sparse convolution (Park et al., 2017): only non-zero weights are multiplied, each with whole vectors of the
// padded input. On row-major blobs vectors go along the width; on tiled ones they hold the same pixel of all tiles, so
// that every one of them is aligned.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "kernels/finite/finite.h"
#include "layers/contract/params.h"
#include "layers/conv2d/shapes.h"
#include "layers/shared/images.h"
#include "layers/shared/padded_window.h"
#include "layers/weights/sparse_lists.h"

namespace softneuro {
namespace {

// Input channels that are copied together, rows of positions (see PaddedWindow) at a time, and how work is dealt.
SN_PARAMS(DsconvParams, chunk, band, split);

SparseSizes sparse_sizes(const Conv2dParams& p, int chunk) {
  return {p.groups, p.group_k(), p.group_c(), p.kh * p.kw, chunk};
}

class PreparedDsconv final : public PreparedSplit {
 public:
  PreparedDsconv(const Problem& problem, const ConvSparseKernels& kernels, FiniteKernel finite, bool tiled,
                 const DsconvParams& params, std::shared_ptr<const Packed> packed)
      : PreparedSplit(problem),
        run_(kernels.run),
        finite_(finite),
        p_(conv2d_params(problem)),
        window_(p_, kernels, tiled),
        lists_(SparseLists(sparse_sizes(p_, params.chunk)), std::move(packed)) {
    args_.bias = lists_.bias();
    args_.activation = problem.layer->post.activation;
    if (p_.empty()) return;
    band_ = std::min<int64_t>(params.band, window_.rows());
    args_.src_row = window_.src_row();
    args_.dst_row = window_.dst_row();
    args_.dst_channel = window_.dst_channel();
    args_.vectors = narrow(window_.vectors());
    args_.last = narrow(window_.last());
    const int64_t chunk = std::min<int64_t>(params.chunk, p_.group_c());
    offsets_ = window_.offsets(chunk, band_);
    in_place_ = window_.in_place() && chunk * window_.src_channel() <= std::numeric_limits<int32_t>::max();
    if (in_place_) {
      for (int64_t c = 0; c < chunk; ++c) offsets_[static_cast<size_t>(c)] = narrow(c * window_.src_channel());
      args_.src_row = window_.dst_row();
    }
    args_.offsets = offsets_.data();
    for (int64_t row = 0; row < window_.rows(); ++row) outside_.push_back(window_.outside(row));
    args_.stream = stores_past_caches(tiled, lists_.chunks(), args_.activation,
                                      p_.n * p_.k * args_.dst_channel * static_cast<int64_t>(sizeof(float)));
    split_ =
        WorkSplit(p_.n, lists_.panels(), window_.rows(), worth_threads(p_, problem.threads), parse_split(params.split));
    scratch_ = round_to_line(static_cast<size_t>(chunk * window_.plane(band_)) * sizeof(float));
  }

  void run(const RunArgs& args) const override {
    args.parallel_for(split_.tasks, [&](int64_t task) {
      auto* const window = reinterpret_cast<float*>(args.workspace.task(task));
      split_.for_task(task, [&](int64_t image, Range panels, Range rows) {
        const ConvSparseArgs call = for_image(args_, args, residual_, image);
        for (int64_t begin = panels.begin; begin < panels.end;) {
          const int64_t group = lists_.group(begin);
          int64_t end = begin + 1;
          while (end < panels.end && lists_.group(end) == group) ++end;
          if (!run_group(call, group, {begin, end}, rows, window)) mend(call, group, {begin, end}, rows);
          begin = end;
        }
      });
    });
  }

 private:
  const float* channel(const ConvSparseArgs& call, int64_t group, int64_t c) const {
    return call.src + (group * p_.group_c() + c) * window_.src_channel();
  }

  // False if an input is not finite.
  bool run_group(const ConvSparseArgs& call, int64_t group, Range panels, Range rows, float* window) const {
    bool finite = true;
    for (int64_t row = rows.begin; row < rows.end; row += band_) {
      const Range band{row, std::min(row + band_, rows.end)};
      ConvSparseArgs part = call;
      part.src = window;
      part.rows = narrow(band.end - band.begin);
      part.dst += row * window_.dst_row();
      if (part.residual != nullptr) part.residual += row * window_.dst_row();
      for (int64_t chunk = 0; chunk < lists_.chunks(); ++chunk) {
        const float* from = channel(call, group, lists_.first(chunk));
        finite = read(from, lists_.channels(chunk), band, window) && finite;
        if (in_place_) part.src = from + row * window_.dst_row();
        part.weights = &lists_.rows(panels.begin, chunk);
        part.lists = narrow(panels.end - panels.begin);
        part.first = chunk == 0;
        part.final = chunk + 1 == lists_.chunks();
        run_(part);
      }
    }
    clear_outside(call, panels, rows);
    return finite;
  }

  // Puts a band of the chunk's channels into the window, if there has to be one. False if a value is not finite.
  bool read(const float* from, int64_t channels, Range band, float* window) const {
    if (!in_place_) return window_.copy(from, channels, band, window, window_.plane(band_));
    bool finite = true;
    const auto count = static_cast<size_t>((band.end - band.begin) * window_.dst_row());
    for (int64_t c = 0; c < channels; ++c)
      finite = finite_(from + c * window_.src_channel() + band.begin * window_.dst_row(), count) && finite;
    return finite;
  }

  template <typename Body>
  void for_channels(Range panels, const Body& body) const {
    for (int64_t panel = panels.begin; panel < panels.end; ++panel) {
      const SparseRows& all = lists_.rows(panel, 0);
      std::for_each(all.channels, all.channels + all.count, body);
    }
  }

  void clear_outside(const ConvSparseArgs& call, Range panels, Range rows) const {
    for_channels(panels, [&](int64_t k) {
      for (int64_t row = rows.begin; row < rows.end; ++row) {
        for (const int32_t at : outside_[static_cast<size_t>(row)]) call.dst[k * window_.dst_channel() + at] = 0;
      }
    });
  }

  // What a dense product gives: NaN where an input that is not finite meets a zero weight.
  void mend(const ConvSparseArgs& call, int64_t group, Range panels, Range rows) const {
    for (int64_t chunk = 0; chunk < lists_.chunks(); ++chunk) {
      for (int64_t c = 0; c < lists_.channels(chunk); ++c) {
        const float* from = channel(call, group, lists_.first(chunk) + c);
        for (int64_t y = 0; y < p_.h; ++y) {
          for (int64_t x = 0; x < p_.w; ++x) {
            if (!std::isfinite(from[window_.in_at(y, x)])) spread(call, panels, rows, chunk, c, y, x);
          }
        }
      }
    }
  }
  void spread(const ConvSparseArgs& call, Range panels, Range rows, int64_t chunk, int64_t c, int64_t y,
              int64_t x) const {
    for (int64_t tap = 0; tap < p_.kh * p_.kw; ++tap) {
      const int64_t top = y + p_.pt - tap / p_.kw * p_.dh, left = x + p_.pl - tap % p_.kw * p_.dw;
      if (top < 0 || left < 0 || top % p_.sh != 0 || left % p_.sw != 0) continue;
      const int64_t oy = top / p_.sh, ox = left / p_.sw;
      if (oy >= p_.oh || ox >= p_.ow || window_.row_of(oy) < rows.begin || window_.row_of(oy) >= rows.end) continue;
      float* const to = call.dst + window_.out_at(oy, ox);
      const auto code = static_cast<uint16_t>(c * p_.kh * p_.kw + tap);
      for (int64_t panel = panels.begin; panel < panels.end; ++panel) {
        spread_nonfinite(lists_.rows(panel, chunk), code, to, window_.dst_channel());
      }
    }
  }

  // The arguments with an image's memory in them.
  static ConvSparseArgs for_image(const ConvSparseArgs& kernel, const RunArgs& args, bool has_residual, int64_t image) {
    ConvSparseArgs call = kernel;
    call.src = input_image(args, 0, image);
    call.dst = output_image(args, image);
    call.residual = residual_image(args, has_residual, image);
    call.stream = call.stream && reinterpret_cast<uintptr_t>(call.dst) % line_bytes == 0;
    return call;
  }

  decltype(ConvSparseKernels::run) run_;
  FiniteKernel finite_;
  Conv2dParams p_;
  PaddedWindow window_;
  PackedLists lists_;
  std::vector<std::vector<int32_t>> outside_;  // of each row of positions
  std::vector<int32_t> offsets_;
  ConvSparseArgs args_;
  int64_t band_ = 1;
  bool in_place_ = false;
};

class Dsconv final : public Routine {
 public:
  Dsconv(Isa isa, const Layout& layout)
      : Routine({.layer_type = "conv2d",
                 .algorithm = "dsconv",
                 .isa = isa,
                 .in = f32_nchw.with(layout),
                 .out = f32_nchw.with(layout),
                 .exploits_sparsity = true}) {}

  Refusal check(const Problem& problem) const override {
    const Conv2dParams p = conv2d_params(problem);
    if (const Refusal sizes = check_int_sizes(p); !sizes.accepted()) return sizes;
    if (const Refusal sparse = check_sparse(*problem.layer->weight("weight"), p.kh * p.kw); !sparse.accepted()) {
      return sparse;
    }
    if (scratch(p, {1, 1, 0}) > static_cast<int64_t>(most_scratch)) return "rows are too long for a window";
    return {};
  }
  // Several sums share nothing where a group has one channel.
  bool promising(const Problem& problem) const override { return conv2d_params(problem).group_k() > 1; }

  std::vector<std::string> param_names() const override { return DsconvParams::names(); }
  std::vector<Tuning> tunings(const Problem& problem) const override {
    const Conv2dParams p = conv2d_params(problem);
    const int split = likely_split(p.oh * p.ow);
    // Windows of few channels stay in L1, of many they save loads and stores of sums: the sparser, the more of them.
    std::vector<Tuning> list;
    const auto taps = static_cast<uint64_t>(std::max<int64_t>(p.kh * p.kw, 1));
    const int likely = static_cast<int>(std::clamp<uint64_t>(std::bit_ceil(144 / taps), 4, 64));
    for (const int chunk : {likely, likely / 2, 2 * likely}) {
      const DsconvParams params = sized(p, chunk, split);
      if (list.empty() || Tuning(params) != list.front()) list.push_back(params);
    }
    if (problem.threads > 1) list.push_back(sized(p, likely, 1 - split));
    return list;
  }

  std::string pack_key(const Problem&, const Tuning& tuning) const override {
    return std::to_string(DsconvParams::of(tuning).chunk);
  }
  Packing packing(const Problem& problem, const Tuning& tuning) const override {
    return lists(problem, tuning).packing(*problem.layer);
  }
  void pack(const Problem& problem, const Tuning& tuning, Packed& to) const override {
    lists(problem, tuning).pack(*problem.layer, to);
  }

  std::unique_ptr<const Prepared> prepare(const Problem& problem, const Tuning& tuning,
                                          std::shared_ptr<const Packed> packed) const override {
    const Conv2dParams p = conv2d_params(problem);
    const auto params = DsconvParams::of(tuning);
    parse_within("chunk", params.chunk, 1, narrow(most_chunk(p.kh * p.kw)));
    parse_positive("band", params.band);
    if (scratch(p, params) > static_cast<int64_t>(most_scratch)) {
      throw Error("chunk=" + std::to_string(params.chunk) + " and band=" + std::to_string(params.band) +
                  " ask for too large a window");
    }
    return std::make_unique<PreparedDsconv>(problem, kernels(), finite_kernel(info().isa), info().in.layout.is_tiled(),
                                            params, std::move(packed));
  }

 private:
  const ConvSparseKernels& kernels() const { return *conv_sparse_kernels(info().isa); }

  static SparseLists lists(const Problem& problem, const Tuning& tuning) {
    return SparseLists(sparse_sizes(conv2d_params(problem), DsconvParams::of(tuning).chunk));
  }
  // Bytes of a task.
  int64_t scratch(const Conv2dParams& p, const DsconvParams& params) const {
    const PaddedWindow window(p, kernels(), info().in.layout.is_tiled());
    return std::min<int64_t>(params.chunk, p.group_c()) * window.plane(std::min<int64_t>(params.band, window.rows())) *
           4;
  }
  // Bands as high as L2 has room for, and of equal height.
  DsconvParams sized(const Conv2dParams& p, int chunk, int split) const {
    const int64_t channels = std::max<int64_t>(std::min<int64_t>(p.group_c(), most_chunk(p.kh * p.kw)), 1);
    const PaddedWindow window(p, kernels(), info().in.layout.is_tiled());
    DsconvParams params{narrow(std::min<int64_t>(chunk, channels)), 1, split};
    const int64_t rows = std::max<int64_t>(window.rows(), 1), sums = p.group_k() * window.dst_row() * 4;
    const auto bytes = [&](int64_t band) { return params.chunk * window.plane(band) * 4 + band * sums; };
    int64_t band = rows;
    while (band > 4 && bytes(band) > l2_bytes() * 3 / 4) band = ceil_div(band, 2);
    const int64_t bands = ceil_div(rows, band);
    params.band = narrow(ceil_div(rows, bands));
    return params;
  }
};

}  // namespace

void conv2d_dsconv(RoutineList& list) {
  for (const Isa isa : all_isas()) {
    list.add<Dsconv>(isa, Layout::tiled(isa_block(isa)));
    list.add<Dsconv>(isa, Layout::nchw());
  }
}

}  // namespace softneuro
