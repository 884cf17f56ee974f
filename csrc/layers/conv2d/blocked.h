// What the routines on conv_direct's kernels share: they differ in the problems they accept and in how they cut them.
#pragma once

#include <memory>

#include "layers/contract/params.h"
#include "layers/conv2d/shapes.h"

namespace softneuro {

// ConvDirectTiling's three, how work is dealt to threads (SplitBy), and whether weights are packed beforehand. Those
// that are not take no memory but the model's own: a panel is packed when its turn comes, which takes some percent of
// the time for a hundred pixels and more.
SN_PARAMS(BlockedParams, panel, rows, c_block, split, packed);

// On nchw{c}c blobs, c being the level's block.
class BlockedConv2d : public Routine {
 public:
  BlockedConv2d(const char* algorithm, Isa isa);

  Refusal check(const Problem& problem) const override;
  std::vector<std::string> param_names() const override { return BlockedParams::names(); }
  Packing packing(const Problem& problem, const Tuning& tuning) const override;
  void pack(const Problem& problem, const Tuning& tuning, Packed& to) const override;
  std::string pack_key(const Problem& problem, const Tuning& tuning) const override;
  std::unique_ptr<const Prepared> prepare(const Problem& problem, const Tuning& tuning,
                                          std::shared_ptr<const Packed> packed) const override;

 protected:
  int block() const { return info().in.layout.block; }
  int max_panel() const;
  // Adds the first of them once more, its weights not packed beforehand.
  std::vector<Tuning> with_unpacked(const Problem& problem, const std::vector<BlockedParams>& packed) const;
  // What is left to refuse after sizes and groups.
  virtual Refusal check_kernel(const Conv2dParams& p) const = 0;

 private:
  BlockedParams checked(const Tuning& tuning) const;
};

}  // namespace softneuro
