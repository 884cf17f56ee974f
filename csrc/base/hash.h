// Fast hash of large memory, to tell weights apart. No defence against somebody who constructs collisions.
#pragma once

#include <cstddef>
#include <string>

namespace softneuro {

// 128 bits as 32 hex digits, the same on every machine of one byte order; reads at memory speed.
std::string bytes_hash(const void* data, size_t bytes);

}  // namespace softneuro
