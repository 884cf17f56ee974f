// What the routines of linear_blocks share: weights as the kernels of dot_blocks have them. Their first param is how
// many bits a weight has, so that plans tell which weights they are for.
#pragma once

#include "kernels/dot_blocks/dot_blocks.h"
#include "layers/contract/routine.h"
#include "layers/linear_blocks/linear_blocks.h"

namespace softneuro {

// The kernels' arguments but for blobs and what is packed.
DotBlocks dot_blocks_sizes(const LinearBlocksParams& p);
// With what is packed.
DotBlocks dot_blocks_args(const Problem& problem, const Packed& packed);

class BlocksRoutine : public Routine {
 public:
  BlocksRoutine(const char* algorithm, Isa isa)
      : Routine({.layer_type = "linear_blocks", .algorithm = algorithm, .isa = isa, .in = f32_nchw, .out = f32_nchw}) {}

  // Equal for all tunings.
  std::string pack_key(const Problem&, const Tuning&) const override { return ""; }
  Packing packing(const Problem& problem, const Tuning&) const override;
  void pack(const Problem& problem, const Tuning&, Packed& to) const override;

 protected:
  static LinearBlocksParams params(const Problem& problem) {
    return linear_blocks_params(*problem.layer, problem.in[0]);
  }
  const DotBlocksKernels& kernels() const { return *dot_blocks_kernels(info().isa); }
};

}  // namespace softneuro
