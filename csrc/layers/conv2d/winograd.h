// What Winograd's routines of conv2d share.
#pragma once

#include "kernels/winograd/winograd.h"
#include "layers/contract/params.h"
#include "layers/conv2d/shapes.h"

namespace softneuro {

// Outputs of a tile along an axis, tiles of a block, how work is dealt to threads (SplitBy), whether weights are
// transformed in passing, and whether they are packed beforehand.
SN_PARAMS(WinogradParams, tile, block, split, passing, packed);

// Those that are tried along an axis.
inline constexpr int winograd_tiles[] = {2, 3, 4, 5, 6, 7, 8};

WinogradShape winograd_shape(const Conv2dParams& p, int tile, bool in_passing, bool adds);
// Refuses what the kernels do not take, whatever the tile; they have channel blocks of `block`.
Refusal check_winograd(const Conv2dParams& p, int block);
// The shape that a routine's params say. Throws Error if there are no transforms for it.
WinogradShape checked_winograd_shape(const WinogradKernels& kernels, const Conv2dParams& p, int tile, int passing,
                                     bool adds);
bool has_transforms(const WinogradKernels& kernels, const WinogradShape& shape);

}  // namespace softneuro
