#include "layers/linear_blocks/packing.h"

#include "layers/shared/kernel_sizes.h"

namespace softneuro {

DotBlocks dot_blocks_sizes(const LinearBlocksParams& p) {
  DotBlocks args{};
  args.n = narrow(p.k);
  args.k = narrow(p.c);
  args.bits = p.bits;
  args.block = p.block;
  args.zeros = p.zeros;
  return args;
}

DotBlocks dot_blocks_args(const Problem& problem, const Packed& packed) {
  DotBlocks args = dot_blocks_sizes(linear_blocks_params(*problem.layer, problem.in[0]));
  args.weights = packed.at<int32_t>("weights");
  args.epilogue = {.bias = packed.find<float>("bias"), .activation = problem.layer->post.activation};
  return args;
}

Packing BlocksRoutine::packing(const Problem& problem, const Tuning&) const {
  const LinearBlocksParams p = params(problem);
  Packing packing;
  packing.add("weights", static_cast<int64_t>(dot_blocks_packed_size(dot_blocks_sizes(p), kernels().lanes)),
              DType::int32);
  add_bias(packing, *problem.layer, p.k);
  return packing;
}

void BlocksRoutine::pack(const Problem& problem, const Tuning&, Packed& to) const {
  const Layer& layer = *problem.layer;
  const LinearBlocksParams p = params(problem);
  const auto scales = layer.weight("scales")->values();
  WeightBlocks from{static_cast<const uint8_t*>(layer.weight("weight")->memory().get()), scales.get(), nullptr};
  if (p.zeros) from.zeros = static_cast<const uint8_t*>(layer.weight("zero_points")->memory().get());
  kernels().pack(dot_blocks_sizes(p), from, to.at<int32_t>("weights"));
  pack_bias(layer, to);
}

}  // namespace softneuro
