# cmake -DROOT=<csrc> -DVERSION=<text> -DOUT=<version.cc> -P source_hash.cmake
# Writes version.cc only if its text changes, so that touching a file recompiles nothing else.
# What measured costs depend on: the routines, and how they are run and timed.
file(GLOB_RECURSE sources RELATIVE ${ROOT} ${ROOT}/simd/* ${ROOT}/kernels/* ${ROOT}/layers/* ${ROOT}/base/team.*
     ${ROOT}/tune/profiler.*)
list(SORT sources)
set(all "${VERSION}\n")
foreach(source IN LISTS sources)
  file(SHA256 ${ROOT}/${source} hash)
  string(APPEND all "${source} ${hash}\n")
endforeach()
string(SHA256 hash "${all}")
string(SUBSTRING ${hash} 0 16 hash)
file(CONFIGURE OUTPUT ${OUT} @ONLY CONTENT [[#include "base/version.h"

namespace softneuro {
std::string_view library_version() { return "@VERSION@"; }
std::string_view kernel_hash() { return "@hash@"; }
}  // namespace softneuro
]])
