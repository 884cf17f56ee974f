// Ops of attention share this: heads of flat tensors, places of rows, rotation.
#pragma once

#include <vector>

#include "providers/ort/lower/lowering.h"

namespace softneuro::ort {

// [B,M,H*D] as [B,H,M,D], which what has rank 4 is already.
int heads_of(Lowering& low, int blob, int64_t heads);
// [B,H,M,D] as [B,M,H*D].
int side_by_side(Lowering& low, int blob);
// A blob of constant integers.
int integers_blob(Lowering& low, const Shape& shape, const std::vector<int64_t>& values);
// first, first + 1, ...
std::vector<int64_t> counted(int64_t first, int64_t count);
// A blob of integers or booleans as int64.
int as_int64(Lowering& low, int blob);
int add_integers(Lowering& low, int a, int b, const char* function = "add");

// Tables of cosines and sines [rows,R], by the inputs that they are, of which rows are taken; the run is rejected where
// there is no such row. `positions` are [B or 1,M].
struct Angles {
  int cosine, sine;  // [B or 1,1,M,2*R]
};
Angles angles_at(Lowering& low, size_t cosines, size_t sines, int positions);
// The same from blobs [B or 1,M,R].
Angles angles_of(Lowering& low, int cosine, int sine);
// The first 2*R of the elements of each row of x[B,H,M,D], their halves or neighbours turned against each other.
int rotated(Lowering& low, int x, const Angles& angles, bool interleaved);

}  // namespace softneuro::ort
