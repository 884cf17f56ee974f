// Layers share this whose weights are zero by whole vectors of output channels.
#pragma once

#include <string>
#include <vector>

#include "kernels/conv_sparse_blocks/conv_sparse_blocks.h"
#include "layers/contract/params.h"

namespace softneuro {

// ConvSparseBlocks' band, and how work is dealt to threads (SplitBy).
SN_PARAMS(SparseBlocksParams, band, split);

class SparseBlocksRoutine : public Routine {
 public:
  SparseBlocksRoutine(const char* layer_type, Isa isa, const Schema& schema);

  bool promising(const Problem& problem) const final;
  std::vector<std::string> param_names() const final { return SparseBlocksParams::names(); }
  std::string pack_key(const Problem&, const Tuning&) const final { return {}; }
  Packing packing(const Problem& problem, const Tuning& tuning) const final;
  void pack(const Problem& problem, const Tuning& tuning, Packed& to) const final;

 protected:
  // The layer as a convolution, of which its weights count.
  virtual ConvDirectShape shape(const Problem& problem) const = 0;
  // Refuses weights that have too few vectors of zeros for skipping them to pay.
  Refusal check_weight(const Problem& problem) const;
  const ConvSparseBlocksKernels& kernels() const { return *conv_sparse_blocks_kernels(info().isa); }
  int block() const { return static_cast<int>(isa_block(info().isa)); }
};

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
