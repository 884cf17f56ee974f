// Ops of the domain com.softneuro, for models that name their routines.
#pragma once

#include "providers/ort/abi/abi.h"

namespace softneuro::ort {

// Adds the domain to a session's options. The ops live as long as the library.
void register_custom_ops(OrtSessionOptions* options);

}  // namespace softneuro::ort
