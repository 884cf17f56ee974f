// Winograd convolution on nchw{c}c blobs, fused per block of tiles: strides 1 and 2, any padding, kernels up to 7 taps
// along an axis, one-dimensional ones included.
#include <algorithm>
#include <cmath>
#include <utility>

#include "base/cpu_traits.h"
#include "kernels/integers.h"
#include "kernels/winograd/winograd.h"
#include "layers/conv2d/blocked.h"
#include "layers/conv2d/rows.h"
#include "layers/gemm_tasks.h"
#include "layers/held_rows.h"
#include "layers/packed_floats.h"

namespace softneuro {
namespace {

constexpr int tile_sizes[] = {2, 3, 4, 5, 6, 7, 8};
constexpr double usual_error = 1e-5;               // what the default max_error leaves to a layer among others
constexpr double strict_error = 4e-6;              // what is left to layers whose errors a network magnifies
constexpr size_t max_scratch = size_t{256} << 20;  // bytes of a task

WinogradShape winograd_shape(const Conv2dParams& p, int tile, bool in_passing, bool adds) {
  const ConvDirectShape s = direct_shape(p);
  return {.groups = s.groups,
          .in_channels = s.in_channels,
          .out_channels = s.out_channels,
          .images = static_cast<int>(p.n),
          .h = s.h,
          .w = s.w,
          .out_h = s.out_h,
          .out_w = s.out_w,
          .kernel_h = s.kernel_h,
          .kernel_w = s.kernel_w,
          .tile_h = s.kernel_h == 1 ? 1 : tile,
          .tile_w = s.kernel_w == 1 ? 1 : tile,
          .pad_top = s.pad_top,
          .pad_left = s.pad_left,
          .stride_h = s.stride_h,
          .stride_w = s.stride_w,
          .in_passing = in_passing,
          .adds = adds};
}

bool has_transforms(const WinogradKernels& kernels, const WinogradShape& s) {
  return kernels.has_transform(s.tile_h, s.kernel_h, s.stride_h) &&
         kernels.has_transform(s.tile_w, s.kernel_w, s.stride_w);
}

class PreparedWinograd final : public PreparedConv2dRows {
 public:
  PreparedWinograd(const Problem& problem, const WinogradKernels& kernels, const WinogradShape& shape, int block,
                   SplitBy by, bool is_packed, std::shared_ptr<const Packed> packed)
      : packed_(std::move(packed)), run_(kernels.run), residual_(problem.layer->post.residual) {
    args_.shape = shape;
    args_.weights = packed_floats(packed_.get());
    args_.epilogue.activation = problem.layer->post.activation;
    if (problem.layer->find_weight("bias") != nullptr) {
      args_.epilogue.bias = args_.weights + (is_packed ? winograd_packed_size(shape, kernels.block) : 0);
    }
    if (!is_packed) {
      rows_ = HeldRows(*problem.layer->weight("weight"));
      args_.rows = {rows_.values(), rows_.factors()};
    }
    if (shape.tiles() == 0 || shape.out_channels == 0) return;
    panels_ = winograd_panels(shape, kernels.block);
    args_.block = std::min(block, shape.tiles());
    // In whole blocks of tiles; panels not at all, as each piece would encode all tiles.
    split_ = WorkSplit(1, panels_, shape.tiles(), problem.threads, by, by == SplitBy::rows ? args_.block : 0);
    scratch_ = round_to_line(kernels.scratch_bytes(shape, args_.block));
  }

  bool works_on_residual() const override { return true; }
  WorkspaceSize workspace() const override { return {.task = scratch_, .tasks = split_.tasks}; }

  void run(const RunArgs& args) const override {
    SharedWork work(split_);
    args.parallel_for(split_.tasks, [&](int64_t task) {
      WinogradArgs call = args_;
      call.src = args.in[0].f32();
      call.src_image = args.in[0].strides[0];
      call.dst = args.out.f32();
      call.dst_image = args.out.strides[0];
      if (residual_) call.epilogue.residual = args.in[1].f32(), call.residual_image = args.in[1].strides[0];
      work.for_task(task, [&](int64_t, Range panels, Range tiles) {
        run_(call, static_cast<int>(panels.begin), static_cast<int>(panels.end), static_cast<int>(tiles.begin),
             static_cast<int>(tiles.end), args.workspace.task(task));
      });
    });
  }

  int64_t row_step() const override { return args_.shape.tile_h; }
  size_t rows_scratch(int64_t) const override { return scratch_; }
  void run_rows(const Conv2dRows& call) const override {
    // As an image that begins with these rows.
    WinogradArgs args = args_;
    WinogradShape& s = args.shape;
    s.images = 1;
    s.out_h = static_cast<int>(call.plane_rows);
    s.pad_top -= static_cast<int>(call.rows.begin) * s.stride_h;
    args.src = call.src;
    args.dst = call.dst;
    const int rows = ceil_div(static_cast<int>(call.rows.end - call.rows.begin), s.tile_h);  // of tiles
    run_(args, 0, panels_, 0, rows * s.tiles_w(), call.scratch);
  }

 private:
  std::shared_ptr<const Packed> packed_;
  HeldRows rows_;
  int panels_ = 0;
  decltype(WinogradKernels::run) run_;
  WinogradArgs args_{};
  WorkSplit split_;
  bool residual_;
  size_t scratch_ = 0;  // bytes of a task
};

class WinogradConv2d final : public Routine {
 public:
  // adds: products have additions for multiplications.
  WinogradConv2d(Isa isa, bool adds)
      : Routine({.layer_type = "conv2d",
                 .algorithm = adds ? "winograd_adds" : "winograd",
                 .isa = isa,
                 .in = f32_blocked(isa_block(isa)),
                 .out = f32_blocked(isa_block(isa)),
                 .error = ErrorClass::winograd,
                 .spreads_nonfinite = true}),
        adds_(adds) {}

  Refusal check(const Problem& problem) const override {
    const Conv2dParams p = conv2d_params(problem);
    if (p.sh > 2 || p.sw > 2) return "has a stride above 2";
    if ((p.dh != 1 && p.kh > 1) || (p.dw != 1 && p.kw > 1)) return "has a dilation";
    const int block = isa_block(info().isa);
    if (p.groups > 1 && (p.group_c() % block != 0 || p.group_k() % block != 0)) {
      return "channels per group are not a multiple of " + std::to_string(block);
    }
    if (p.kh == 1 && p.kw == 1) return "a 1x1 kernel has nothing to save";
    const Refusal sizes = check_int_sizes(p);
    if (!sizes.accepted()) return sizes;
    if (p.n * p.oh * p.ow >= int64_t{1} << 31) return "more outputs than the kernels count";
    return tilings(p, problem.threads).empty()
               ? Refusal("no transform for this kernel and stride, or scratch beyond 256 MiB")
               : Refusal();
  }

  // To prepare a tile's positions takes what two output blocks' products save, and few channels' sums are short.
  bool promising(const Problem& problem) const override {
    const Conv2dParams p = conv2d_params(problem);
    const int block = isa_block(info().isa);
    return !adds_ || (adds_beside_fmas() && block == 16 && p.group_k() > 2 * block && p.group_c() > 2 * block);
  }

  std::vector<std::string> param_names() const override { return {"tile", "block", "split", "passing", "packed"}; }
  std::vector<Tuning> tunings(const Problem& problem) const override;

  std::string pack_key(const Problem&, const Tuning& tuning) const override {
    if (tuning[4] == 0) return "bias";
    return tuning[3] != 0 ? "taps" : "tile " + std::to_string(tuning[0]);
  }
  size_t packed_bytes(const Problem& problem, const Tuning& tuning) const override {
    const WinogradShape shape = checked_shape(problem, tuning);
    const int block = isa_block(info().isa);
    const size_t biases = problem.layer->find_weight("bias") != nullptr ? winograd_bias_size(shape, block) : 0;
    return ((tuning[4] != 0 ? winograd_packed_size(shape, block) : 0) + biases) * sizeof(float);
  }
  std::shared_ptr<const Packed> pack(const Problem& problem, const Tuning& tuning) const override {
    const WinogradShape shape = checked_shape(problem, tuning);
    const int block = isa_block(info().isa);
    const Constant* bias = problem.layer->find_weight("bias");
    const size_t weights = tuning[4] != 0 ? winograd_packed_size(shape, block) : 0;
    const size_t biases = winograd_bias_size(shape, block);
    auto packed = std::make_shared<PackedFloats>(static_cast<int64_t>(weights + (bias != nullptr ? biases : 0)));
    if (tuning[4] != 0) {
      const HeldRows rows(*problem.layer->weight("weight"));
      winograd_pack(shape, kernels(), {rows.values(), rows.factors()}, packed->data());
    }
    if (bias != nullptr) {
      float* to = packed->data() + weights;
      std::fill_n(to, biases, 0.f);
      std::copy_n((*bias)->values().get(), (*bias)->elements(), to);
    }
    return packed;
  }

  std::unique_ptr<const Prepared> prepare(const Problem& problem, const Tuning& tuning,
                                          std::shared_ptr<const Packed> packed) const override {
    if (tuning[1] < 1) throw Error("block must be positive, not " + std::to_string(tuning[1]));
    return std::make_unique<PreparedWinograd>(problem, kernels(), checked_shape(problem, tuning), tuning[1],
                                              parse_split(tuning[2]), tuning[4] != 0, std::move(packed));
  }

  double expected_error(const Problem& problem, const Tuning& tuning) const override {
    const WinogradShape shape = checked_shape(problem, tuning);
    return winograd_error(shape);
  }

 private:
  const WinogradKernels& kernels() const { return *winograd_kernels(info().isa); }

  WinogradShape checked_shape(const Problem& problem, const Tuning& tuning) const {
    const bool known = std::find(std::begin(tile_sizes), std::end(tile_sizes), tuning[0]) != std::end(tile_sizes);
    const WinogradShape shape = winograd_shape(conv2d_params(problem), tuning[0], tuning[3] != 0, adds_);
    for (const int i : {3, 4}) {
      if (tuning[i] != 0 && tuning[i] != 1) {
        throw Error(param_names()[i] + " must be 0 or 1, not " + std::to_string(tuning[i]));
      }
    }
    if (adds_ && tuning[3] != 0) throw Error("additions take weights that are transformed ahead: passing must be 0");
    if (tuning[3] == 0 && tuning[4] == 0) throw Error("packed may be 0 only with passing 1");
    if (known && has_transforms(kernels(), shape) && (tuning[3] == 0 || kernels().can_pass(shape))) return shape;
    throw Error("there is no transform for tile " + std::to_string(tuning[0]) +
                (tuning[3] != 0 ? " with weights transformed in passing" : ""));
  }

  bool adds_;

  bool keeps_in_registers(const WinogradShape& s) const { return kernels().passes_in_registers(s, s.tiles()); }

  struct Tiling {
    WinogradShape shape;
    int tile;
    int blocks[2];  // tiles per block: first what should be best
    double cost, error;
  };
  std::vector<Tiling> tilings(const Conv2dParams& p, int threads) const;
  // Of the plain sum, by the same count.
  double plain_cost(const Conv2dParams& p) const;
};

double WinogradConv2d::plain_cost(const Conv2dParams& p) const {
  const int block = isa_block(info().isa);
  const auto blocks = [block](int64_t channels) { return static_cast<double>((channels + block - 1) / block); };
  return static_cast<double>(p.n * p.oh * p.ow * p.kh * p.kw) * blocks(p.group_c()) * blocks(p.group_k()) * block;
}

// Tile sizes with the blocks to try, cheapest first by a rough count of vector operations and weight traffic.
std::vector<WinogradConv2d::Tiling> WinogradConv2d::tilings(const Conv2dParams& p, int threads) const {
  std::vector<Tiling> list;
  const double lanes = isa_block(info().isa);
  const double in_blocks = std::ceil(static_cast<double>(p.group_c()) / lanes);
  const double out_blocks = std::ceil(static_cast<double>(p.group_k()) / lanes);
  const double l2 = static_cast<double>(std::max<size_t>(caches().l2, 256 << 10));
  for (const int tile : tile_sizes) {
    for (const bool in_passing : {false, true}) {
      if (in_passing && adds_) continue;
      Tiling t{winograd_shape(p, tile, in_passing, adds_), tile, {}, 0, 0};
      if (!has_transforms(kernels(), t.shape) || (in_passing && !kernels().can_pass(t.shape))) continue;
      t.error = winograd_error(t.shape);
      const int tiles = std::max(t.shape.tiles(), 1), group = adds_ ? kernels().added_group : kernels().max_group,
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
      if (kernels().scratch_bytes(t.shape, std::max(t.blocks[0], t.blocks[1])) > max_scratch) continue;
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
  std::stable_sort(list.begin(), list.end(), [](const Tiling& a, const Tiling& b) { return a.cost < b.cost; });
  // A stride leaves less to save, and what the plain sum beats by this count is not worth a try.
  while (p.sh * p.sw > 1 && list.size() > 1 && list.back().cost > plain_cost(p)) list.pop_back();
  return list;
}

std::vector<Tuning> WinogradConv2d::tunings(const Problem& problem) const {
  const Conv2dParams p = conv2d_params(problem);
  const auto list = tilings(p, problem.threads);
  std::vector<Tuning> result;
  const int split = p.n * p.oh * p.ow >= 28 * 28 ? 0 : 1;
  const bool has_rows = problem.layer->weight("weight")->has_rows();
  // Turning rows to lanes is nothing beside the arithmetic in passing, unless that stays in registers.
  const auto is_packed = [&](const WinogradShape& s) { return !s.in_passing || !has_rows || keeps_in_registers(s); };
  const auto add = [&](const Tiling& t, int which, int by) {
    const Tuning tuning{t.tile, t.blocks[which], by, t.shape.in_passing, is_packed(t.shape)};
    if (std::find(result.begin(), result.end(), tuning) == result.end()) result.push_back(tuning);
  };
  // The three cheapest sizes, and the cheapest in passing, which also is what can be had with little memory. Less exact
  // ones come on top of these, and so do more exact ones, as it depends on max_error which of them are candidates.
  int sizes = 0;
  double limit = 0;  // by the cheapest
  for (const Tiling& t : list) {
    if (t.shape.in_passing) continue;
    if (limit == 0) limit = 1.5 * t.cost;
    if (sizes == 3 || t.cost > limit) break;
    add(t, 0, split);
    if (sizes == 0) add(t, 1, split);
    sizes += t.error <= usual_error ? 1 : 0;
  }
  for (const Tiling& t : list) {
    if (t.tile == 4 && t.cost < 2.5 * list[0].cost && !t.shape.in_passing) add(t, 0, split);
  }
  // And the most exact that saves a third: some networks magnify their first layers' errors so much that a plan of
  // allowed error has no others there.
  const Tiling* exact = nullptr;
  for (const Tiling& t : list) {
    if (adds_ || t.shape.in_passing || t.cost > plain_cost(p) / 1.5) continue;
    if (exact == nullptr || t.error < exact->error) exact = &t;
  }
  if (exact != nullptr) add(*exact, 0, split);
  for (const Tiling& t : list) {
    if (!t.shape.in_passing) continue;
    add(t, 0, split);
    if (has_rows && is_packed(t.shape)) result.push_back({t.tile, t.blocks[0], split, 1, 0});
    if (t.error <= strict_error) break;
  }
  // The other split would make weights in passing once for each thread.
  for (const double error : {usual_error, strict_error}) {
    const auto found = std::find_if(list.begin(), list.end(),
                                    [&](const Tiling& t) { return !t.shape.in_passing && t.error <= error; });
    if (problem.threads > 1 && found != list.end()) add(*found, 0, 1 - split);
  }
  return result;
}

}  // namespace

void conv2d_winograd(RoutineList& list) {
  for (const bool adds : {false, true}) {
    for (Isa isa : all_isas()) list.add<WinogradConv2d>(isa, adds);
  }
}

}  // namespace softneuro
