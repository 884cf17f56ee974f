// Blobs of no meaning, to time routines on.
#pragma once

#include "base/arena.h"
#include "base/tensor.h"

namespace softneuro {

// Strides that a blob of a strided layout is likely to have.
Strides likely_strides(const Shape& shape, const Layout& layout);

// Ordinary numbers throughout.
void fill(AlignedBuffer& buffer, DType dtype = DType::float32);
// Until it holds such a blob, filled; what it had is lost.
void grow(AlignedBuffer& buffer, const TensorDesc& desc, const Schema& schema);

}  // namespace softneuro
