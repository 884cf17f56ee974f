#include "layers/conv2d/winograd_cost.h"

#include <algorithm>
#include <cmath>

#include "base/cpu_traits.h"

namespace softneuro {
namespace {

constexpr double usual_error = 1e-5;   // what the default max_error leaves to a layer among others
constexpr double strict_error = 4e-6;  // what is left to layers whose errors a network magnifies

}  // namespace

bool WinogradCost::promises(const Conv2dParams& p) const {
  const int block = kernels_.block;
  return !adds_ || (adds_beside_fmas() && block == 16 && p.group_k() > 2 * block && p.group_c() > 2 * block);
}

bool WinogradCost::keeps_in_registers(const WinogradShape& s) const {
  return kernels_.passes_in_registers(s, s.tiles());
}

double WinogradCost::plain(const Conv2dParams& p) const {
  const int block = kernels_.block;
  const auto blocks = [block](int64_t channels) { return static_cast<double>(ceil_div(channels, block)); };
  return static_cast<double>(p.n * p.oh * p.ow * p.kh * p.kw) * blocks(p.group_c()) * blocks(p.group_k()) * block;
}

std::vector<WinogradTiling> WinogradCost::tilings(const Conv2dParams& p, int threads) const {
  std::vector<WinogradTiling> list;
  const double lanes = kernels_.block;
  const double in_blocks = std::ceil(static_cast<double>(p.group_c()) / lanes);
  const double out_blocks = std::ceil(static_cast<double>(p.group_k()) / lanes);
  const double l2 = static_cast<double>(l2_bytes());
  for (const int tile : winograd_tiles) {
    for (const bool in_passing : {false, true}) {
      if (in_passing && adds_) continue;
      WinogradTiling t{winograd_shape(p, tile, in_passing, adds_), tile, {}, 0, 0};
      if (!has_transforms(kernels_, t.shape) || (in_passing && !kernels_.can_pass(t.shape))) continue;
      t.error = winograd_error(t.shape);
      const int tiles = std::max(t.shape.tiles(), 1), group = adds_ ? kernels_.added_group : kernels_.max_group,
                positions = t.shape.positions();
      const int kinds = t.shape.weights();  // of weights, which some positions share
      // Either a block stays in L2 between encoding and decoding, or weights that are larger than that, or that are
      // transformed in passing, pass by only once.
      const double tile_bytes = positions * (in_blocks + t.shape.panel()) * lanes * sizeof(float);
      const double pairs = in_blocks * out_blocks * lanes;  // vectors of weights of a kind
      const double ahead_bytes = kinds * pairs * lanes * sizeof(float);
      if (in_passing && ahead_bytes < l2) continue;  // they stay where they are
      const int fit = std::clamp(static_cast<int>(0.5 * l2 / tile_bytes) / group, 1, 4) * group;
      t.blocks[0] = std::min(fit, tiles);
      t.blocks[1] = std::min(tiles, 8 * group);
      if (in_passing || ahead_bytes > 16 * l2) std::swap(t.blocks[0], t.blocks[1]);
      if (kernels_.scratch_bytes(t.shape, std::max(t.blocks[0], t.blocks[1])) > most_scratch) continue;
      const double transforms = 6.0 * tiles * (in_blocks + out_blocks);
      // A vector of weights takes as long to load and to fetch ahead as some tiles take to use it, unless it is made in
      // registers.
      const bool in_registers = in_passing && keeps_in_registers(t.shape);
      const double saved = adds_ ? 11. / 16 : 1;
      const double products = positions * (saved * tiles + (in_registers ? 0 : 4)) * pairs;
      // Weights from memory at 6 bytes per operation; two threads together get half as much again as one.
      const double streaming = std::max(0.0, ahead_bytes / 12 * (1 + threads) - products);
      const double turning = 5.0 * static_cast<double>(p.kh * p.kw);  // rows to lanes
      const double passing = (in_registers ? 2.5 * kinds : 5 * kinds + turning) * pairs;
      t.cost = products + positions * transforms + (in_passing ? passing : streaming);
      list.push_back(t);
    }
  }
  std::stable_sort(list.begin(), list.end(),
                   [](const WinogradTiling& a, const WinogradTiling& b) { return a.cost < b.cost; });
  // A stride leaves less to save, and what the plain sum beats by this count is not worth a try.
  while (p.sh * p.sw > 1 && list.size() > 1 && list.back().cost > plain(p)) list.pop_back();
  return list;
}

std::vector<WinogradParams> WinogradCost::choices(const Conv2dParams& p, int threads, bool has_rows) const {
  const auto list = tilings(p, threads);
  std::vector<WinogradParams> result;
  const int split = likely_split(p.n * p.oh * p.ow);
  // Turning rows to lanes is nothing beside the arithmetic in passing, unless that stays in registers.
  const auto is_packed = [&](const WinogradShape& s) { return !s.in_passing || !has_rows || keeps_in_registers(s); };
  const auto add = [&](const WinogradTiling& t, int which, int by) {
    const WinogradParams params{t.tile, t.blocks[which], by, t.shape.in_passing, is_packed(t.shape)};
    if (std::find(result.begin(), result.end(), params) == result.end()) result.push_back(params);
  };
  // The three cheapest sizes, and the cheapest in passing, which also is what can be had with little memory. Less exact
  // ones come on top of these, and so do more exact ones, as it depends on max_error which of them are candidates.
  int sizes = 0;
  double limit = 0;  // by the cheapest
  for (const WinogradTiling& t : list) {
    if (t.shape.in_passing) continue;
    if (limit == 0) limit = 1.5 * t.cost;
    if (sizes == 3 || t.cost > limit) break;
    add(t, 0, split);
    if (sizes == 0) add(t, 1, split);
    sizes += t.error <= usual_error ? 1 : 0;
  }
  for (const WinogradTiling& t : list) {
    if (t.tile == 4 && t.cost < 2.5 * list[0].cost && !t.shape.in_passing) add(t, 0, split);
  }
  // And the most exact that saves a third: some networks magnify their first layers' errors so much that a plan of
  // allowed error has no others there.
  const WinogradTiling* exact = nullptr;
  for (const WinogradTiling& t : list) {
    if (adds_ || t.shape.in_passing || t.cost > plain(p) / 1.5) continue;
    if (exact == nullptr || t.error < exact->error) exact = &t;
  }
  if (exact != nullptr) add(*exact, 0, split);
  for (const WinogradTiling& t : list) {
    if (!t.shape.in_passing) continue;
    add(t, 0, split);
    if (has_rows && is_packed(t.shape)) result.push_back({t.tile, t.blocks[0], split, 1, 0});
    if (t.error <= strict_error) break;
  }
  // The other split would make weights in passing once for each thread.
  for (const double error : {usual_error, strict_error}) {
    const auto found = std::find_if(list.begin(), list.end(),
                                    [&](const WinogradTiling& t) { return !t.shape.in_passing && t.error <= error; });
    if (threads > 1 && found != list.end()) add(*found, 0, 1 - split);
  }
  return result;
}

bool winograd_stages_promise(const Conv2dParams& p, const WinogradShape& shape) {
  // On an AMD EPYC (Zen 4, 32 MiB of L3).
  constexpr int least_tiles = 84;
  constexpr size_t usual_l3 = size_t{32} << 20;
  const size_t l3 = caches().l3 != 0 ? caches().l3 : usual_l3;
  const auto weights = static_cast<size_t>(shape.positions() * p.c * p.k) * sizeof(float);
  return weights > l3 && shape.tiles() >= least_tiles;
}

}  // namespace softneuro
