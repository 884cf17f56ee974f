// conv2d_pair in tiles of the intermediate map, one channel of a tile at a time: a direct sparse convolution makes it,
// an inverse one adds all that follows from it to the output. Tasks own rows of the output. Each computes all tiles
// that reach its rows, those at seams twice, and leaves other rows alone: so tasks neither wait nor meet, and
// an output's sum is in one order whoever makes it.
#include <algorithm>

#include "kernels/activate/activate.h"
#include "kernels/conv_sparse/conv_sparse.h"
#include "layers/contract/params.h"
#include "layers/conv2d_pair/conv2d_pair.h"
#include "layers/conv2d_pair/tile_grid.h"
#include "layers/shared/images.h"
#include "layers/weights/sparse_weights.h"

namespace softneuro {
namespace {

// Pixels of a tile; output rows of which a piece consists that may go from one task to another, 0: none.
SN_PARAMS(FusedParams, height, width, piece);

// Calls body(kernel, channel of the group, tap, value) for the non-zeros of a weight.
template <typename Body>
void for_non_zeros(const Conv2dParams& p, const float* values, const Body& body) {
  const int64_t taps = p.kh * p.kw;
  for (int64_t k = 0; k < p.k; ++k) {
    for (int64_t i = 0; i < p.group_c() * taps; ++i, ++values) {
      if (*values != 0) body(k, i / taps, i % taps, *values);
    }
  }
}

// [begin][m + 1] from the number of non-zeros in each row.
void to_begins(int64_t* begin, int64_t rows) {
  int64_t sum = 0;
  for (int64_t row = 0; row <= rows; ++row) sum += std::exchange(begin[row], sum);
}

void pack_first(const Conv2dPairStages& stages, Packed& to) {
  const Conv2dParams& p = stages.p1;
  const auto values = stages.first.weight("weight")->values();
  int64_t* begin = to.at<int64_t>("begin");
  std::fill_n(begin, p.k + 1, 0);
  for_non_zeros(p, values.get(), [&](int64_t k, int64_t, int64_t, float) { ++begin[k]; });
  to_begins(begin, p.k);
  int32_t* tap_to = to.at<int32_t>("taps");
  int64_t room = to.packing().find("values")->count;
  float* value_to = to.at<float>("values");
  for_non_zeros(p, values.get(), [&](int64_t, int64_t c, int64_t tap, float value) {
    expect_unchanged(room-- > 0);
    *tap_to++ = static_cast<int32_t>(c * p.kh * p.kw + tap);
    *value_to++ = value;
  });
  pack_bias(stages.first, to);
}

void pack_second(const Conv2dPairStages& stages, Packed& to) {
  const Conv2dParams& p = stages.p2;
  const auto values = stages.second.weight("weight")->values();
  int64_t* begin = to.at<int64_t>("begin");
  std::fill_n(begin, p.c + 1, 0);
  const auto channel_of = [&](int64_t k, int64_t c) { return k / p.group_k() * p.group_c() + c; };
  for_non_zeros(p, values.get(), [&](int64_t k, int64_t c, int64_t, float) { ++begin[channel_of(k, c)]; });
  to_begins(begin, p.c);
  const int64_t room = to.packing().find("values")->count;
  // By channel, and in a channel by kernel and tap, as kernels come in order.
  std::vector<int64_t> next(begin, begin + p.c);
  for_non_zeros(p, values.get(), [&](int64_t k, int64_t c, int64_t tap, float value) {
    const int64_t at = next[static_cast<size_t>(channel_of(k, c))]++;
    expect_unchanged(at < room);
    to.at<int32_t>("kernels")[at] = static_cast<int32_t>(k);
    to.at<int32_t>("taps")[at] = static_cast<int32_t>(tap);
    to.at<float>("values")[at] = value;
  });
  pack_bias(stages.second, to);
}

// A task's scratch.
struct Scratch {
  size_t tile, planes, taps, bytes;  // where they begin; the band is first

  explicit Scratch(const PairTiles& tiles) {
    tile = round_to_line(static_cast<size_t>(tiles.band_floats()) * sizeof(float));
    planes = tile + round_to_line(static_cast<size_t>(tiles.tile_floats()) * sizeof(float));
    taps = planes + round_to_line(static_cast<size_t>(tiles.plane_count()) * sizeof(ConvPairPlane));
    bytes = taps + round_to_line(static_cast<size_t>(tiles.tap_count()) * sizeof(ConvPairTap));
  }
};

class PreparedFusedDsconv final : public PreparedSplit {
 public:
  PreparedFusedDsconv(const Problem& problem, const Conv2dPairStages& stages, Isa isa, const FusedParams& params,
                      std::shared_ptr<const Packed> packed)
      : PreparedSplit(problem, std::move(packed)),
        first_(part_of(packed_, "first")),
        second_(part_of(packed_, "second")),
        kernels_(*conv_pair_kernels(isa)),
        copy_plane_(conv_sparse_kernels(isa)->copy_plane),
        activate_(activate_kernel(isa)),
        p1_(stages.p1),
        p2_(stages.p2),
        activation_(problem.layer->post.activation) {
    if (p2_.empty()) return;
    tiles_.emplace(p1_, p2_, params.height, params.width, kernels_.lanes);
    parts_.emplace(*tiles_);
    scratch_ = parts_->bytes;
    const int threads = std::max(worth_threads(p1_, problem.threads), worth_threads(p2_, problem.threads));
    split_ = WorkSplit(p2_.n, 1, p2_.oh, threads, SplitBy::rows, params.piece);
    set_args(stages.first.post.activation);
  }

  void run(const RunArgs& args) const override {
    for_pieces(args, [&](int64_t image, Range, Range rows, std::byte* scratch) {
      run_rows(input_image(args, 0, image), output_image(args, image), residual_image(args, residual_, image), rows,
               scratch);
    });
  }

 private:
  void set_args(const Activation& activation) {
    args_.src_plane = tiles_->band_plane();
    args_.src_row = p2_.sh * p1_.sh * tiles_->band_row();
    args_.channels = narrow(p1_.k), args_.first_groups = narrow(p1_.groups);
    args_.first_channels = narrow(p1_.group_c());
    args_.first_taps = narrow(p1_.group_c() * p1_.kh * p1_.kw);
    args_.first = {first_->at<int64_t>("begin"), first_->at<float>("values")};
    args_.first_tap = first_->at<int32_t>("taps");
    args_.bias = first_->find<float>("bias");
    args_.activation = activation;
    args_.tile_rows = narrow(tiles_->rows().tile), args_.tile_columns = narrow(tiles_->columns().tile);
    args_.plane_count = narrow(tiles_->plane_count());
    args_.second = {second_->at<int64_t>("begin"), second_->at<float>("values")};
    args_.second_kernel = second_->at<int32_t>("kernels");
    args_.second_tap = second_->at<int32_t>("taps");
    args_.second_groups = narrow(p2_.groups), args_.kernels = narrow(p2_.k);
    args_.tap_count = narrow(tiles_->tap_count());
    args_.dst_plane = p2_.oh * p2_.ow, args_.dst_row = p2_.ow;
  }

  void run_rows(const float* src, float* dst, const float* residual, Range rows, std::byte* scratch) const {
    ConvPairArgs call = args_;
    auto* const band = reinterpret_cast<float*>(scratch);
    auto* const planes = reinterpret_cast<ConvPairPlane*>(scratch + parts_->planes);
    auto* const taps = reinterpret_cast<ConvPairTap*>(scratch + parts_->taps);
    call.src = band, call.tile = reinterpret_cast<float*>(scratch + parts_->tile);
    call.planes = planes, call.taps = taps, call.dst = dst;
    const PairAxis& axis = tiles_->rows();
    int64_t begun = rows.begin, finished = rows.begin;
    for (int64_t i = rows.begin / axis.tile; i < axis.tiles() && finished < rows.end; ++i) {
      // Pixels of a row p reach outputs from p - taps.back().shift to p.
      const int64_t end = std::clamp((i + 1) * axis.tile, begun, rows.end);
      begin_rows(dst, {begun, end});
      begun = end;
      const PairTiles::Band part = tiles_->band(i, rows);
      call.src_finite = fill_band(src, part, band);
      for (int64_t j = 0; part.rows > 0 && j < tiles_->columns().tiles(); ++j) {
        tiles_->set_tile(i, j, rows, part, planes, taps);
        kernels_.run(call);
      }
      const int64_t complete = (i + 1) * axis.tile - axis.taps.back().shift;
      const int64_t done = i + 1 == axis.tiles() ? rows.end : std::clamp(complete, finished, rows.end);
      end_rows(dst, residual, {finished, done});
      finished = done;
    }
  }

  // The rows that a row of tiles reads. Whether they are finite.
  bool fill_band(const float* src, const PairTiles::Band& part, float* band) const {
    bool finite = true;
    for (int64_t c = 0; part.rows > 0 && c < p1_.c; ++c) {
      finite = copy_plane_({.src = src + c * p1_.h * p1_.w,
                            .h = narrow(p1_.h),
                            .w = narrow(p1_.w),
                            .top = narrow(part.top),
                            .left = narrow(-tiles_->before()),
                            .rows = narrow(part.rows),
                            .phases = narrow(tiles_->phases()),
                            .columns = narrow(tiles_->band_columns()),
                            .dst = band + c * tiles_->band_plane()}) &&
               finite;
    }
    return finite;
  }

  void begin_rows(float* dst, Range rows) const {
    const float* const bias = second_->find<float>("bias");
    for (int64_t k = 0; k < p2_.k; ++k) {
      std::fill(dst + (k * p2_.oh + rows.begin) * p2_.ow, dst + (k * p2_.oh + rows.end) * p2_.ow,
                bias != nullptr ? bias[k] : 0.0F);
    }
  }
  void end_rows(float* dst, const float* residual, Range rows) const {
    if (residual == nullptr && activation_.kind == ActivationKind::none) return;
    for (int64_t k = 0; k < p2_.k; ++k) {
      const int64_t at = (k * p2_.oh + rows.begin) * p2_.ow;
      activate_(dst + at, dst + at, residual != nullptr ? residual + at : nullptr, (rows.end - rows.begin) * p2_.ow,
                activation_, nullptr);
    }
  }

  std::shared_ptr<const Packed> first_, second_;
  const ConvPairKernels& kernels_;
  decltype(ConvSparseKernels::copy_plane) copy_plane_;
  ActivateKernel activate_;
  Conv2dParams p1_, p2_;
  Activation activation_;
  std::optional<PairTiles> tiles_;
  std::optional<Scratch> parts_;
  ConvPairArgs args_;
};

class FusedDsconv final : public Routine {
 public:
  explicit FusedDsconv(Isa isa)
      : Routine({.layer_type = "conv2d_pair",
                 .algorithm = "fused_dsconv",
                 .isa = isa,
                 .in = f32_nchw,
                 .out = f32_nchw,
                 .exploits_sparsity = true}) {}

  Refusal check(const Problem& problem) const override {
    const Conv2dPairStages stages = conv2d_pair_stages(problem);
    if (Refusal refusal = check_conv2d_pair(stages); !refusal.accepted()) return refusal;
    if (stages.p2.empty()) return {};
    return fits(stages, 1, 1) ? Refusal() : "the rows that a tile reads are more than 256 MiB";
  }

  // It lost to bands of rows wherever both were measured, as each product loads and stores a sum. Where a run takes
  // long, that is not worth finding out again.
  bool promising(const Problem& problem) const override {
    const Conv2dPairStages stages = conv2d_pair_stages(problem);
    const auto products = [](const Layer& stage, const Conv2dParams& p) {
      const ConstantData& weight = *stage.weight("weight");
      return static_cast<double>(p.n * p.oh * p.ow * weight.elements()) * (1 - weight.traits().zeros);
    };
    constexpr double most_products = 5e8;
    return products(stages.first, stages.p1) + products(stages.second, stages.p2) <= most_products;
  }

  std::vector<std::string> param_names() const override { return FusedParams::names(); }
  std::vector<Tuning> tunings(const Problem& problem) const override {
    const Conv2dPairStages stages = conv2d_pair_stages(problem);
    const int lanes = conv_pair_kernels(info().isa)->lanes;
    // Tiles as large as the registers, and larger ones, which read the weights less often.
    std::vector<Tuning> list;
    for (const auto& [height, vectors] : {std::pair{4, 3}, {8, 6}}) {
      if (!stages.p2.empty() && !fits(stages, height, vectors * lanes)) continue;
      list.push_back(FusedParams{height, vectors * lanes, 0});
      if (problem.threads > 1) list.push_back(FusedParams{height, vectors * lanes, height});
    }
    if (list.empty()) list.push_back(FusedParams{1, 1, 0});
    return list;
  }

  std::string pack_key(const Problem&, const Tuning&) const override { return {}; }
  Packing packing(const Problem& problem, const Tuning&) const override {
    const Conv2dPairStages stages = conv2d_pair_stages(problem);
    const auto rows_of = [](const Layer& stage, int64_t rows, bool by_channel) {
      const int64_t count = count_nonzeros(*stage.weight("weight"));
      Packing packing;
      packing.add("begin", rows + 1, DType::int64).add("taps", count, DType::int32).add("values", count);
      if (by_channel) packing.add("kernels", count, DType::int32);
      add_bias(packing, stage, stage.weight("weight")->shape()[0]);
      return packing;
    };
    return Packing()
        .add("first", rows_of(stages.first, stages.p1.k, false))
        .add("second", rows_of(stages.second, stages.p2.c, true));
  }
  void pack(const Problem& problem, const Tuning&, Packed& to) const override {
    const Conv2dPairStages stages = conv2d_pair_stages(problem);
    Packed first = to.part("first"), second = to.part("second");
    pack_first(stages, first);
    pack_second(stages, second);
  }
  std::unique_ptr<const Prepared> prepare(const Problem& problem, const Tuning& tuning,
                                          std::shared_ptr<const Packed> packed) const override {
    const auto params = FusedParams::of(tuning);
    parse_positive("height", params.height);
    parse_positive("width", params.width);
    if (params.piece < 0) throw Error("piece must not be negative, but is " + std::to_string(params.piece));
    const Conv2dPairStages stages = conv2d_pair_stages(problem);
    if (!stages.p2.empty() && !fits(stages, params.height, params.width)) {
      throw Error("height=" + std::to_string(params.height) + " and width=" + std::to_string(params.width) +
                  " ask for a tile that scratch has no room for");
    }
    return std::make_unique<PreparedFusedDsconv>(problem, stages, info().isa, params, std::move(packed));
  }

 private:
  bool fits(const Conv2dPairStages& stages, int height, int width) const {
    const int lanes = conv_pair_kernels(info().isa)->lanes;
    return Scratch(PairTiles(stages.p1, stages.p2, height, width, lanes)).bytes <= most_scratch;
  }
};

}  // namespace

void conv2d_pair_fused_dsconv(RoutineList& list) {
  for (Isa isa : all_isas()) list.add<FusedDsconv>(isa);
}

}  // namespace softneuro
