// A 1x1 stage of depthwise_block on pixels that follow each other in planes of channel blocks: by conv_direct's kernels
// or, with additions for some of the multiplications, by conv_winograd_1968's.
#pragma once

#include "kernels/conv_direct/conv_direct.h"
#include "kernels/conv_winograd_1968/conv_winograd_1968.h"
#include "layers/depthwise_block/packing.h"

namespace softneuro {

// The panel of a stage with additions, where others have output channel blocks that share a pass over the input.
constexpr int added_panel = 0;

// Packs both stages by their panels.
BlockPacking block_packing(Isa isa, int expand_panel, int project_panel);

struct StagePixels {
  const float* src;
  float* dst;
  const float* residual;  // lies like dst; null: none
  int count;
  bool near;  // src was read or written before
};

class PointwiseStage {
 public:
  struct Planes {
    size_t src, dst;      // floats from channel block to channel block
    int64_t most_pixels;  // of a call
    bool in_place;        // src may be written to
  };

  PointwiseStage() = default;
  // packed: the stage's part of block_packing.
  PointwiseStage(const Conv2dParams& p, const Layer& stage, Isa isa, int panel, const Packed& packed,
                 const Planes& planes);

  // 64-byte aligned; 0: none.
  size_t scratch_bytes() const;
  // Output channel blocks that are best run together.
  int panel() const { return panel_; }
  // Before the first run of these pixels.
  void prepare(const StagePixels& pixels, void* scratch) const;
  // Output channel blocks [begin, end), where begin is a multiple of panel() and end is, too, or the last block's.
  void run(const StagePixels& pixels, int begin, int end, void* scratch) const;

 private:
  ConvWinograd1968Args added_call(const StagePixels& pixels) const;

  int panel_ = 1;
  const ConvDirectKernels* direct_ = nullptr;  // or
  const ConvWinograd1968Kernels* added_ = nullptr;
  ConvDirectArgs direct_args_{};
  ConvWinograd1968Args added_args_{};
};

}  // namespace softneuro
