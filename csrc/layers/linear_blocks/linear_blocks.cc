#include "layers/linear_blocks/linear_blocks.h"

#include "kernels/dot_blocks/dot_blocks.h"
#include "layers/contract/routine.h"
#include "layers/contract/validate.h"

namespace softneuro {

#define SN_ROUTINES "layers/linear_blocks/routines.inc"
#include "layers/contract/collect.inc"

void linear_blocks_reference(const Layer& layer, std::span<const RefTensor> in, RefTensor out);

namespace {

OutputDescs infer(const Layer& layer, std::span<const TensorDesc> in) {
  expect_inputs(in, 1);
  TensorDesc out = in[0];
  const LinearBlocksParams p = linear_blocks_params(layer, in[0]);
  out.shape[out.shape.rank() - 1] = p.k;
  return out;
}

// Lists of several axes may be written as one.
void expect_weight(const Layer& layer, const char* role, const Shape& shape, bool bytes) {
  const Constant& weight = layer.weight(role);
  if (weight->shape() != shape && weight->shape() != Shape{shape.elements()}) {
    throw Error(std::string(role) + " has shape " + weight->shape().str() + ", not " + shape.str());
  }
  if (bytes && (weight->dtype() != DType::uint8 || !weight->at_hand())) {
    throw Error(std::string(role) + " must be uint8");
  }
}

}  // namespace

LinearBlocksParams linear_blocks_params(const Layer& layer, const TensorDesc& in) {
  layer.attrs.expect_only({"bits", "block"});
  const int64_t bits = layer.attrs.integer("bits"), block = layer.attrs.integer("block");
  if (bits != 4 && bits != 8) throw Error("bits is " + std::to_string(bits) + ", not 4 or 8");
  if (block > 1 << 20 || !DotBlocks::has_block(static_cast<int>(block))) {
    throw Error("block is " + std::to_string(block) + ", not a power of two from 16 to 4096");
  }
  const int rank = in.shape.rank();
  if (rank < 1) throw Error("the input must have at least one axis");
  const Shape& weight = layer.weight("weight")->shape();
  expect_rank(weight, 3);
  LinearBlocksParams p;
  p.rows = in.shape.product(0, rank - 1), p.c = in.shape[rank - 1], p.k = weight[0];
  p.bits = static_cast<int>(bits), p.block = static_cast<int>(block);
  p.blocks = (p.c + block - 1) / block;
  expect_weight(layer, "weight", {p.k, p.blocks, block * bits / 8}, true);
  expect_weight(layer, "scales", {p.k, p.blocks}, false);
  p.zeros = layer.find_weight("zero_points") != nullptr;
  if (p.zeros) expect_weight(layer, "zero_points", {p.k, (p.blocks * bits + 7) / 8}, true);
  if (layer.find_weight("bias") != nullptr) expect_weight(layer, "bias", {p.k}, false);
  return p;
}

const LayerDef& linear_blocks_layer() {
  static const LayerDef def{"linear_blocks", infer, one_output<linear_blocks_reference>, collect_routines};
  return def;
}

}  // namespace softneuro
