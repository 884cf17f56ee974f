#include "layers/weights/sparse_blocks.h"

#include <limits>
#include <utility>

#include "layers/weights/sparse_weights.h"

namespace softneuro {
namespace {

int64_t all_vectors(const ConvDirectShape& shape, int block) {
  return static_cast<int64_t>(conv_sparse_blocks_count(shape, block)) * shape.in_channels * shape.kernel_h *
         shape.kernel_w;
}

}  // namespace

SparseBlocksRoutine::SparseBlocksRoutine(const char* layer_type, Isa isa, const Schema& schema)
    : Routine({.layer_type = layer_type,
               .algorithm = "block_sparse",
               .isa = isa,
               .in = schema,
               .out = schema,
               .exploits_sparsity = true}) {}

Refusal SparseBlocksRoutine::check_weight(const Problem& problem) const {
  const ConstantData& weight = *problem.layer->weight("weight");
  if (const Refusal refusal = check_zeros(weight); !refusal.accepted()) return refusal;
  if (weight.traits().zero_vectors < block()) {
    return "too few blocks of " + std::to_string(block()) + " outputs are all zero";
  }
  return all_vectors(shape(problem), block()) > std::numeric_limits<int32_t>::max()
             ? Refusal("sizes are beyond the kernels' 32-bit offsets")
             : Refusal();
}

// False for vectors that are narrower than the machine's: weights may have zeros enough for these alone, and still they
// lose.
bool SparseBlocksRoutine::promising(const Problem&) const { return block() == isa_block(available_isas().front()); }

Packing SparseBlocksRoutine::packing(const Problem& problem, const Tuning&) const {
  const auto values = problem.layer->weight("weight")->values();
  const ConvDirectShape conv = shape(problem);
  const int64_t vectors = conv_sparse_blocks_pack(conv, block(), values.get(), nullptr, nullptr, nullptr);
  const int64_t blocks = conv_sparse_blocks_count(conv, block());
  Packing packing;
  packing.add("weights", vectors * block());
  packing.add("taps", vectors, DType::int32);
  packing.add("starts", blocks + 1, DType::int32);
  add_bias(packing, *problem.layer, blocks * block());
  return packing;
}

void SparseBlocksRoutine::pack(const Problem& problem, const Tuning&, Packed& to) const {
  const auto values = problem.layer->weight("weight")->values();
  const ConvDirectShape conv = shape(problem);
  const int64_t vectors = conv_sparse_blocks_pack(conv, block(), values.get(), nullptr, nullptr, nullptr);
  expect_unchanged(vectors == to.packing().find("taps")->count);
  conv_sparse_blocks_pack(conv, block(), values.get(), to.at<int32_t>("starts"), to.at<int32_t>("taps"),
                          to.at<float>("weights"));
  pack_bias(*problem.layer, to);
}

SparseBlocks::SparseBlocks(const Layer& layer, const ConvDirectShape& shape, int band,
                           const ConvSparseBlocksKernels& kernels, std::shared_ptr<const Packed> packed)
    : packed_(std::move(packed)), block_(kernels.block) {
  args_.shape = shape;
  args_.band = band;
  args_.starts = packed_->at<int32_t>("starts");
  args_.weights = packed_->at<float>("weights");
  args_.epilogue = {.bias = packed_->find<float>("bias"), .activation = layer.post.activation};
  offsets_.resize(args_.starts[conv_sparse_blocks_count(shape, kernels.block)]);
  kernels.place(shape, band, packed_->at<int32_t>("taps"), static_cast<int>(offsets_.size()), offsets_.data());
  args_.offsets = offsets_.data();
}

}  // namespace softneuro
