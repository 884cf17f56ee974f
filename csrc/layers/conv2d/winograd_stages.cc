// Winograd convolution on nchw{c}c blobs as a childnet of three layers over the whole batch: winograd_encode,
// batched_linear, winograd_decode.
#include <algorithm>

#include "layers/contract/childnet.h"
#include "layers/conv2d/winograd_cost.h"
#include "layers/products/winograd_stages.h"

namespace softneuro {
namespace {

constexpr int tile_sizes[] = {3, 4, 5, 6};
SN_PARAMS(StagesParams, tile, panel);

WinogradShape stages_shape(const Conv2dParams& p, int tile) { return winograd_shape(p, tile, false, false); }

bool known(const WinogradShape& s, int tile) {
  return std::find(std::begin(tile_sizes), std::end(tile_sizes), tile) != std::end(tile_sizes) &&
         winograd_has_transform(s.tile_h, s.kernel_h) && winograd_has_transform(s.tile_w, s.kernel_w);
}

// Those that there are transforms for, least products first.
std::vector<int> tiles_by_products(const Conv2dParams& p) {
  std::vector<int> tiles;
  const auto products = [&](int tile) {
    const WinogradShape s = stages_shape(p, tile);
    return int64_t{s.positions()} * s.tiles();
  };
  for (const int tile : tile_sizes) {
    if (known(stages_shape(p, tile), tile)) tiles.push_back(tile);
  }
  std::stable_sort(tiles.begin(), tiles.end(), [&](int a, int b) { return products(a) < products(b); });
  return tiles;
}

class WinogradStagesConv2d final : public ChildnetRoutine {
 public:
  explicit WinogradStagesConv2d(Isa isa)
      : ChildnetRoutine({.layer_type = "conv2d",
                         .algorithm = "winograd_stages",
                         .isa = isa,
                         .in = f32_blocked(isa_block(isa)),
                         .out = f32_blocked(isa_block(isa)),
                         .error = ErrorClass::winograd,
                         .spreads_nonfinite = true}) {}

  Refusal check(const Problem& problem) const override {
    const Conv2dParams p = conv2d_params(problem);
    if (p.sh != 1 || p.sw != 1) return "has a stride";
    if ((p.dh != 1 && p.kh > 1) || (p.dw != 1 && p.kw > 1)) return "has a dilation";
    if (p.groups > 1) return "has groups";
    const int block = isa_block(info().isa);
    if (p.c % block != 0 || p.k % block != 0) return "channels are not a multiple of " + std::to_string(block);
    if (p.kh == 1 && p.kw == 1) return "a 1x1 kernel has nothing to save";
    const Refusal sizes = check_int_sizes(p);
    if (!sizes.accepted()) return sizes;
    if (p.empty()) return "has no outputs";
    if (Refusal outputs = check_kernel_outputs(p.n * p.oh * p.ow); !outputs.accepted()) return outputs;
    return tunings(problem).empty() ? Refusal("no transform for a kernel of this size, or blobs beyond 256 MiB")
                                    : Refusal();
  }

  std::vector<std::string> param_names() const override { return StagesParams::names(); }
  std::vector<Tuning> tunings(const Problem& problem) const override {
    const Conv2dParams p = conv2d_params(problem);
    std::vector<Tuning> list;
    for (const int tile : tiles_by_products(p)) {
      const StagesParams params{tile, 2};
      if (childnet_blob_bytes(childnet(problem, params)) > most_scratch) continue;
      list.push_back(params);
      if (list.size() == 2) break;
    }
    return list;
  }
  bool promising(const Problem& problem) const override {
    const Conv2dParams p = conv2d_params(problem);
    return winograd_stages_promise(p, stages_shape(p, StagesParams::of(tunings(problem)[0]).tile));
  }

  std::vector<std::string_view> part_types() const override {
    return {"winograd_encode", "batched_linear", "winograd_decode"};
  }
  Childnet childnet(const Problem& problem, const Tuning& tuning) const override;

  double expected_error(const Problem& problem, const Tuning& tuning) const override {
    return winograd_error(stages_shape(conv2d_params(problem), StagesParams::of(tuning).tile));
  }
};

const Routine* stage_routine(const char* type, const char* algorithm, Isa isa) {
  for (const auto& routine : routines(type)) {
    if (routine->info().algorithm == algorithm && routine->info().isa == isa) return routine.get();
  }
  throw Error(std::string(type) + " has no routine " + algorithm + " of this level");
}

Childnet WinogradStagesConv2d::childnet(const Problem& problem, const Tuning& tuning) const {
  const Isa isa = info().isa;
  const Conv2dParams p = conv2d_params(problem);
  const auto params = StagesParams::of(tuning);
  const WinogradShape shape = stages_shape(p, params.tile);
  if (!known(shape, params.tile)) throw Error("there is no transform for tile " + std::to_string(params.tile));
  const std::vector<int64_t> kernel{p.kh, p.kw}, tile{shape.tile_h, shape.tile_w};
  Childnet net;

  Layer encode;
  encode.type = "winograd_encode";
  encode.attrs.set("kernel", kernel);
  encode.attrs.set("tile", tile);
  encode.attrs.set("padding", std::vector<int64_t>{p.pt, p.pl, p.pb, p.pr});
  net.push_back(child_part(std::move(encode), {problem.in[0]}, {stage_routine("winograd_encode", "passes", isa), {}}));

  Layer products;
  products.type = "batched_linear";
  const Shape weights{shape.positions(), p.k, p.c};
  products.set_weight("weight", std::make_shared<const ConstantData>(weights, [weights, shape, isa,
                                                                               from = problem.layer->weight("weight")] {
                        auto made = std::make_shared<std::vector<float>>(static_cast<size_t>(weights.elements()));
                        winograd_position_weights(shape, *winograd_kernels(isa), from->values().get(), made->data());
                        return ConstantData::Values(made, made->data());
                      }));
  net.push_back(
      child_part(std::move(products), {net[0].out}, {stage_routine("batched_linear", "gemm", isa), {params.panel}}));

  Layer decode;
  decode.type = "winograd_decode";
  decode.attrs.set("kernel", kernel);
  decode.attrs.set("tile", tile);
  decode.attrs.set("output_size", std::vector<int64_t>{p.oh, p.ow});
  decode.post = problem.layer->post;
  if (const Constant* bias = problem.layer->find_weight("bias")) decode.set_weight("bias", *bias);
  std::vector<TensorDesc> in{net[1].out};
  if (decode.post.residual) in.push_back(problem.out());
  net.push_back(child_part(std::move(decode), std::move(in), {stage_routine("winograd_decode", "passes", isa), {}}));
  return net;
}

}  // namespace

void conv2d_winograd_stages(RoutineList& list) {
  for (Isa isa : all_isas()) list.add<WinogradStagesConv2d>(isa);
}

}  // namespace softneuro
