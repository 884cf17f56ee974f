// Where torch keeps what changes with a tensor.
#pragma once

#include <cstdint>
#include <vector>

namespace softneuro {

// Major, minor and patch number of the torch that this was built with, then, in bytes: the size of its tensor object
// and of an object's reference count; where in the tensor are the pointers to the storage, to the version counter and
// to what autograd has of it; where in that are requires_grad and grad_fn.
std::vector<int64_t> tensor_fields();

}  // namespace softneuro
