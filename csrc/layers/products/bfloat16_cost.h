// Where products of bfloat16 tiles are worth measuring, and with what bands. Nothing here changes what is right.
#pragma once

#include <vector>

#include "kernels/conv_bfloat16/conv_bfloat16.h"
#include "layers/contract/params.h"

namespace softneuro {

// Rows of a band, how work is dealt to threads (SplitBy), output blocks that share a pass over the input, input
// channels that are split at a time, or 0 for all.
SN_PARAMS(Bfloat16Params, rows, split, panel, depth);

// Bytes of the split input of the lowest band that fills its tiles.
size_t bfloat16_least_bytes(const ConvBfloat16Shape& shape, int block);
// Only where there are instructions for it (in plain code it is there to be tested on any machine) and where inputs
// fill half a tile on either side.
bool bfloat16_promises(Isa isa, const ConvBfloat16Shape& shape, int block);
// shape: of panel 2. split: how work is best dealt, as a guess.
std::vector<Bfloat16Params> bfloat16_choices(const ConvBfloat16Shape& shape, int block, int split, int threads);

}  // namespace softneuro
