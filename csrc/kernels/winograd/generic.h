// Winograd convolution over Vf, fused per block of tiles: all positions of a block are encoded, then panel by panel of
// output channels multiplied and decoded, while the block stays in L2. Layouts and contract: winograd.h.
//
//   encoded   [position][input block][tile][lane], positions an odd number of cache lines apart
//   products  [position][tile][lane of panel], the same
//   passing   [weight][channel of a chunk][lane of panel], the same: weights transformed in passing
//   taps      [channel][tap][lane]: of some input channels and one output block, if they are not packed
//   weighed   [channel][row][column][lane]: as many channels' taps, packed or not, for two rows of positions
//   sums      [output block][row][column][lane]: a tile's decoded sums, of blobs of bytes
#pragma once

#include "kernels/integers.h"
#include "kernels/store/rest.h"
#include "kernels/winograd/adds.h"
#include "kernels/winograd/bytes.h"
#include "kernels/winograd/passing.h"
#include "kernels/winograd/tile.h"
#include "kernels/winograd/weights.h"
#include "kernels/winograd/winograd.h"

namespace softneuro::SN_ISA {
namespace winograd {

// Channel block outermost, so that neighbouring tiles find each other's columns in L1 and rows are read as streams.
inline void encode_block(const WinogradArgs& args, const Plan& plan, int group, int first, int count) {
  const WinogradShape& s = args.shape;
  EncodeRows a;
  a.src_row = static_cast<size_t>(s.w) * lanes;
  a.rows = s.positions_h();
  a.dst = plan.tile;
  EncodeColumns b{plan.tile, s.positions_w(), plan.encoded, plan.encoded_position};
  for (int cb = 0; cb < plan.in_blocks; ++cb) {
    for (int t = 0; t < count; ++t, b.dst += lanes) {
      const Tile tile = find_tile(s, first + t);
      const ptrdiff_t pixel = find_inputs(s, tile, a);
      a.src = static_cast<const float*>(args.src) + tile.image * args.src_image +
              (group * plan.in_blocks + cb) * plan.src_plane + pixel * lanes;
      along(s.along_rows()).encode_rows(a);
      along(s.across_rows()).encode_columns(b);
    }
  }
}

inline void decode_block(const WinogradArgs& args, const Plan& plan, int out_block, int panel, int tail, int first,
                         int count) {
  const WinogradShape& s = args.shape;
  const Epilogue& epilogue = args.epilogue;
  const float* residual = epilogue.residual.f32();
  const int columns = s.positions_w();
  const bool second_pass = !is_clamp(epilogue.activation.kind);
  DecodeRows b;
  b.src = plan.tile;
  b.dst_row = static_cast<size_t>(s.out_w) * lanes;
  b.bounds = clamp_bounds(epilogue.activation);
  for (int t = 0; t < count; ++t) {
    const Tile tile = find_tile(s, first + t);
    b.rows = s.out_h - tile.y < s.tile_h ? s.out_h - tile.y : s.tile_h;
    b.columns = s.out_w - tile.x < s.tile_w ? s.out_w - tile.x : s.tile_w;
    for (int i = 0; i < panel; ++i) {
      const int channels = i + 1 == panel ? tail : lanes;
      const size_t at = (out_block + i) * plan.dst_plane + (static_cast<size_t>(tile.y) * s.out_w + tile.x) * lanes;
      b.dst = static_cast<float*>(args.dst) + tile.image * args.dst_image + at;
      b.residual = residual != nullptr ? residual + tile.image * args.residual_image + at : nullptr;
      b.bias = epilogue.bias != nullptr ? epilogue.bias + (out_block + i) * lanes : nullptr;
      const DecodeColumns a{plan.product + (t * panel + i) * lanes, plan.product_position, columns, plan.tile};
      along(s.across_rows()).decode_columns(a);
      along(s.along_rows()).decode_rows(b);
      if (!second_pass && channels == lanes) continue;
      for (int y = 0; y < b.rows; ++y)
        finish_written(epilogue.activation, !second_pass, b.dst + y * b.dst_row, b.columns, channels);
    }
  }
}

inline size_t scratch_bytes(const WinogradShape& s, int block) { return Plan(s, block).floats * sizeof(float); }

inline void run(const WinogradArgs& args, int panel_begin, int panel_end, int tile_begin, int tile_end, void* scratch) {
  const WinogradShape& s = args.shape;
  const Plan plan(s, args.block, scratch);
  const EndOfTiles end(args.epilogue, args.dst, static_cast<ptrdiff_t>(s.groups) * s.out_channels);
  const int per_group = ceil_div(plan.out_blocks, s.panel());
  const size_t per_block = s.weight_floats(lanes, plan.in_blocks, lanes) * s.weights();
  const int total = tile_end - tile_begin, blocks = ceil_div(total, args.block);
  for (int i = 0, first = tile_begin; i < blocks; ++i) {
    const int count = total / blocks + (i < total % blocks ? 1 : 0);
    int group = -1;
    for (int index = panel_begin; index < panel_end; ++index) {
      const int first_block = index % per_group * s.panel();
      if (index / per_group != group) {
        group = index / per_group;
        s.bytes ? encode_block_of_bytes(args, plan, group, first, count)
                : encode_block(args, plan, group, first, count);
        if (s.adds) prepare_tiles(plan, s.positions(), count);
      }
      const int left = plan.out_blocks - first_block, panel = left < s.panel() ? left : s.panel();
      const int out_block = group * plan.out_blocks + first_block;
      const int tail = left > panel ? lanes : s.out_channels - (plan.out_blocks - 1) * lanes;
      if (s.in_passing) {
        const int channel = group * s.out_channels + first_block * lanes;
        const Taps taps{args, channel, (panel - 1) * lanes + tail, index + 1 == panel_end};
        is_few(s, count) ? multiply_few_tiles(plan, taps, panel, count) : multiply_passing(plan, taps, panel, count);
      } else if (s.adds) {
        multiply_block_adding(plan, args.weights + out_block * per_block, per_block / s.weights(), count);
      } else {
        const float* weights = args.weights + out_block * per_block;
        const int weight = plan.in_blocks * lanes * panel * lanes;
        multiply_block(plan, {weights, static_cast<size_t>(weight), 0, plan.in_blocks, weights + weight, weight}, panel,
                       count);
      }
      s.bytes ? decode_block_of_bytes(args, plan, end, out_block, panel, tail, first, count)
              : decode_block(args, plan, out_block, panel, tail, first, count);
    }
    first += count;
  }
}

}  // namespace winograd
}  // namespace softneuro::SN_ISA

namespace softneuro {

SN_KERNEL_TABLE(WinogradKernels, winograd) = {
    .block = SN_ISA::lanes,
    .max_group = SN_ISA::winograd::max_group,
    .added_group = SN_ISA::winograd::added_group,
    .has_transform = SN_ISA::winograd::has_transform,
    .scratch_bytes = SN_ISA::winograd::scratch_bytes,
    .can_pass = SN_ISA::winograd::can_pass,
    .passes_in_registers = SN_ISA::winograd::is_few,
    .pack_taps = SN_ISA::winograd::pack_taps,
    .transform_weights = SN_ISA::winograd::transform_weights,
    .run = SN_ISA::winograd::run,
};

}  // namespace softneuro
