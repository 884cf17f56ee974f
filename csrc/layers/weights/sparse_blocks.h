// What layers share whose weights are zero by whole vectors of output channels.
#pragma once

#include <string>
#include <vector>

#include "kernels/conv_sparse_blocks/conv_sparse_blocks.h"
#include "layers/contract/routine.h"

namespace softneuro {

// Refuses weights that have too few vectors of zeros for skipping them to pay.
Refusal check_sparse_blocks(const ConstantData& weight, const ConvDirectShape& shape, int block);
// False for vectors that are narrower than the machine's: weights may have zeros enough for these alone, and still they
// lose.
bool promising_blocks(int block);
Packing sparse_blocks_packing(const Layer& layer, const ConvDirectShape& shape, int block);
void pack_sparse_blocks(const Layer& layer, const ConvDirectShape& shape, int block, Packed& to);

// A kernel's arguments but for the blobs.
class SparseBlocks {
 public:
  SparseBlocks(const Layer& layer, const ConvDirectShape& shape, int band, const ConvSparseBlocksKernels& kernels,
               std::shared_ptr<const Packed> packed);

  const ConvSparseBlocks& args() const { return args_; }
  // Operations of all sums together, for each pixel.
  double flop() const { return 2.0 * static_cast<double>(offsets_.size()) * block_; }

 private:
  std::shared_ptr<const Packed> packed_;
  std::vector<int32_t> offsets_;
  ConvSparseBlocks args_{};
  int block_;
};

}  // namespace softneuro
