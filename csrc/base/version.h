// What this build is.
#pragma once

#include <string_view>

namespace softneuro {

// The package's version, for instance "0.1.0".
std::string_view library_version();
// Hash of the sources of simd/, kernels/ and layers/: a cost measured under another hash was of other code.
std::string_view kernel_hash();

}  // namespace softneuro
