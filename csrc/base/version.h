// What this build is.
#pragma once

#include <string_view>

namespace softneuro {

// The package's version, for instance "0.1.0".
std::string_view library_version();
// Hash of all sources of simd/, kernels/ and layers/: saved packings are of one hash.
std::string_view kernel_hash();
// Hash of the sources that the routines of a registration function are made of, and of how they are timed; of
// "<type>_naive" those of a layer type's naive routine. Empty for other names.
std::string_view routine_sources(std::string_view function);

}  // namespace softneuro
