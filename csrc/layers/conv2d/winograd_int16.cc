// Winograd convolution of quantized blobs by products of 16 bits. Blobs lie as those of int8.cc do.
#include <algorithm>
#include <utility>

#include "kernels/winograd_int16/winograd_int16.h"
#include "layers/conv2d/winograd_of_bytes.h"
#include "layers/weights/held_rows.h"

namespace softneuro {
namespace {

// Outputs of a tile along each axis, tiles of a block, and how work is dealt to threads (SplitBy).
SN_PARAMS(WinogradInt16Params, tile_h, tile_w, block, split);

class WinogradInt16Conv2d final : public Routine {
 public:
  WinogradInt16Conv2d(Isa isa, DType out)
      : Routine([&] {
          RoutineInfo info = int8_info("conv2d", isa, Layout::nhwc(), out);
          info.algorithm = "winograd_int16";
          info.error = ErrorClass::winograd;
          info.quantizes_first = out == DType::qint8;
          return info;
        }()) {}

  Refusal check(const Problem& problem) const override {
    const Conv2dParams p = conv2d_params(problem);
    for (const Refusal& refusal : {check_int8_blobs(problem), check_int8_post(problem), check_winograd(p, block())}) {
      if (!refusal.accepted()) return refusal;
    }
    if (p.kh != 3 || p.kw != 3) return "the kernel is not 3x3";
    if (p.sh != 1 || p.sw != 1) return "has a stride";
    if (problem.layer->weight("weight")->desc().quantization == nullptr) return "the weights are not quantized";
    return tunings(problem).empty() ? Refusal("scratch beyond 256 MiB") : Refusal();
  }

  // AMX multiplies bytes sixteen times as fast. Fewer channels than an input block has are read one by one, which takes
  // longer than plain sums of bytes (Zen 3).
  bool promising(const Problem& problem) const override {
    return !isa_available(Isa::amx) && conv2d_params(problem).group_c() >= 2 * kernels().block;
  }

  std::vector<std::string> param_names() const override { return WinogradInt16Params::names(); }
  std::vector<Tuning> tunings(const Problem& problem) const override {
    const Conv2dParams p = conv2d_params(problem);
    const int split = likely_split(p.n * p.oh * p.ow);
    std::vector<Tuning> list;
    for (const TileSize& tile : tile_sizes) {
      const WinogradShape shape = shape_of(p, tile);
      const Blocks blocks = blocks_of(shape);
      if (kernels().scratch_bytes(shape, std::max(blocks.in_l2, blocks.many)) > most_scratch) continue;
      list.push_back(WinogradInt16Params{tile.h, tile.w, blocks.in_l2, split});
      if (blocks.many > blocks.in_l2) list.push_back(WinogradInt16Params{tile.h, tile.w, blocks.many, split});
      if (problem.threads > 1) list.push_back(WinogradInt16Params{tile.h, tile.w, blocks.in_l2, 1 - split});
    }
    return list;
  }

  std::string pack_key(const Problem& problem, const Tuning& tuning) const override {
    const auto params = WinogradInt16Params::of(tuning);
    return int8_pack_key(problem) + "tile " + std::to_string(params.tile_h) + "x" + std::to_string(params.tile_w);
  }
  Packing packing(const Problem& problem, const Tuning& tuning) const override {
    const WinogradShape shape = checked_shape(problem, WinogradInt16Params::of(tuning));
    const Shape& weight = problem.layer->weight("weight")->shape();
    Packing packing;
    // Two weights in the room of a float, and a unit for each position.
    packing.add("weights", winograd_int16_packed_size(shape, kernels().block), DType::float32,
                shape.positions() * weight[0] * (ceil_div<int64_t>(weight[1], 2) + 1));
    add_winograd_ends(packing, problem, winograd_bias_size(shape, kernels().block));
    return packing;
  }
  void pack(const Problem& problem, const Tuning& tuning, Packed& to) const override {
    const WinogradShape shape = checked_shape(problem, WinogradInt16Params::of(tuning));
    const HeldRows rows(*problem.layer->weight("weight"));
    winograd_int16_pack(shape, kernels().block, {rows.values(), rows.factors()}, to.at<float>("weights"));
    pack_winograd_ends(problem, winograd_bias_size(shape, kernels().block), to);
  }

  std::unique_ptr<const Prepared> prepare(const Problem& problem, const Tuning& tuning,
                                          std::shared_ptr<const Packed> packed) const override {
    const auto params = WinogradInt16Params::of(tuning);
    parse_positive("block", params.block);
    return std::make_unique<PreparedWinogradOfBytes<WinogradInt16Args, WinogradInt16Kernels>>(
        problem, kernels(), checked_shape(problem, params), params.block, parse_split(params.split), info().out.dtype,
        std::move(packed));
  }

  // Sums err by this before they are brought to steps.
  double expected_error(const Problem& problem, const Tuning& tuning) const override {
    return winograd_int16_error(checked_shape(problem, WinogradInt16Params::of(tuning)));
  }

 private:
  struct TileSize {
    int h, w;
  };
  // The most exact first: it is the default.
  static constexpr TileSize tile_sizes[] = {{2, 2}, {4, 2}, {4, 4}};
  struct Blocks {
    int in_l2, many;  // tiles: so many that they stay in L2, and as many that weights seldom pass by
  };

  const WinogradInt16Kernels& kernels() const { return *winograd_int16_kernels(info().isa); }
  int block() const { return isa_block(vectors_of(info().isa)); }

  Blocks blocks_of(const WinogradShape& s) const {
    const int group = kernels().max_group, tiles = std::max(s.tiles(), 1);
    const auto tile_bytes = static_cast<int64_t>(kernels().scratch_bytes(s, group)) / group;
    const auto fit = static_cast<int>(std::min<int64_t>(l2_bytes() / 2 / tile_bytes / group, 4));
    return {std::min(std::max(fit, 1) * group, tiles), std::min(8 * group, tiles)};
  }

  static WinogradShape shape_of(const Conv2dParams& p, const TileSize& tile) {
    WinogradShape shape = winograd_shape(p, tile.h, false, false);
    shape.tile_w = tile.w;
    shape.bytes = true;
    return shape;
  }
  static WinogradShape checked_shape(const Problem& problem, const WinogradInt16Params& params) {
    for (const int tile : {params.tile_h, params.tile_w}) {
      if (!winograd_int16_has_tile(tile))
        throw Error("a tile has 2 or 4 outputs along an axis, not " + std::to_string(tile));
    }
    return shape_of(conv2d_params(problem), {params.tile_h, params.tile_w});
  }
};

}  // namespace

void conv2d_winograd_int16(RoutineList& list) {
  for (const Isa isa : int8_isas()) {
    if (isa == Isa::amx) continue;
    for (const DType out : {DType::qint8, DType::float32}) list.add<WinogradInt16Conv2d>(isa, out);
  }
}

}  // namespace softneuro
