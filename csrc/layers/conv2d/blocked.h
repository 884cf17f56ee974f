// What the routines on conv_direct's kernels share: they differ in the problems they accept and in how they cut them.
#pragma once

#include <memory>

#include "base/refusal.h"
#include "kernels/conv_direct/conv_direct.h"
#include "layers/conv2d/conv2d.h"
#include "layers/conv2d/split.h"
#include "layers/routine.h"

namespace softneuro {

Conv2dParams conv2d_params(const Problem& problem);
// Kernels count in int: refuses images and kernels that it cannot hold.
Refusal check_int_sizes(const Conv2dParams& p);
// A size that it let pass.
inline int narrow(int64_t size) { return static_cast<int>(size); }
ConvDirectShape direct_shape(const Conv2dParams& p);
// Threads that pay for a convolution (see split.h).
int worth_threads(const Conv2dParams& p, int threads);

// On nchw{c}c blobs, c being the level's block. Tuning: ConvDirectTiling's three, how work is dealt to threads, and
// whether weights are packed beforehand. Those that are not take no memory but the model's own: a panel is packed when
// its turn comes, which takes some percent of the time for a hundred pixels and more.
class BlockedConv2d : public Routine {
 public:
  BlockedConv2d(const char* algorithm, Isa isa);

  Refusal check(const Problem& problem) const override;
  std::vector<std::string> param_names() const override { return {"panel", "rows", "c_block", "split", "packed"}; }
  std::shared_ptr<const Packed> pack(const Problem& problem, const Tuning& tuning) const override;
  size_t packed_bytes(const Problem& problem, const Tuning& tuning) const override;
  std::string pack_key(const Problem&, const Tuning& tuning) const override {
    return tuning[4] != 0 ? "panel " + std::to_string(tuning[0]) : "bias";
  }
  std::unique_ptr<const Prepared> prepare(const Problem& problem, const Tuning& tuning,
                                          std::shared_ptr<const Packed> packed) const override;

 protected:
  int block() const { return info().in.layout.block; }
  int max_panel() const;
  // Adds to what packs its weights beforehand one tuning that does not.
  void add_unpacked(const Problem& problem, std::vector<Tuning>& list) const;
  // What is left to refuse after sizes and groups.
  virtual Refusal check_kernel(const Conv2dParams& p) const = 0;
};

}  // namespace softneuro
