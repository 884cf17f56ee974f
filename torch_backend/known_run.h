// Known weights' nets, run on torch's tensors without torch's dispatcher.
#pragma once

#include <cstdint>

namespace softneuro {

// Address of the KnownRun of this process, which stays; 0 where torch has no Python that tensors can be given to.
int64_t known_run();

}  // namespace softneuro
