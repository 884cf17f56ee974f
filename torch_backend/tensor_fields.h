// Where torch keeps what changes with a tensor.
#pragma once

#include <cstdint>
#include <vector>

namespace softneuro {

// Major, minor and patch number of the torch that this was built with, then, in bytes: the size of its tensor object,
// where in it are the pointers to the storage and to the version counter, and how long an object's reference count is.
std::vector<int64_t> tensor_fields();

}  // namespace softneuro
