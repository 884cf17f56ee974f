// Constants packed as blobs of a layout.
#pragma once

#include "base/schema.h"
#include "layers/contract/packed.h"

namespace softneuro {

// A section of such a blob's elements.
void add_in_layout(Packing& packing, const std::string& name, const Shape& shape, const Layout& layout);
// Row-major values; padding lanes become zero.
void pack_in_layout(const float* values, const Shape& shape, const Layout& layout, Packed& to, std::string_view name);

}  // namespace softneuro
