# cmake -DROOT=<csrc> -DVERSION=<text> -DOUT=<version.cc> [-DREACH=<file>] -P source_hash.cmake
# Writes version.cc only if its text changes, so that touching a file recompiles nothing else. It has a hash for every
# registration function in layers/*/routines.inc: of the file that defines it, of all that this reaches, and of how
# routines are run and timed. Reached are: what a file includes of simd/, kernels/ and layers/; with a header its .cc;
# with a file of kernels/<op> all of that folder; with a call of another registration function the file of that one.
cmake_policy(VERSION 3.24)

# Contracts: they say what layers, routines and weights are, and nothing of how fast a routine is. Nearly every routine
# includes them, so a change of one would empty the database.
set(contracts contract/layer.h contract/routine.h contract/registry.h contract/attrs.h contract/params.h contract/packed.h
    contract/validate.h contract/collect.inc contract/layers.inc weights/constant_data.h weights/weights_check.h
    weights/weight_traits.h)
list(TRANSFORM contracts PREPEND layers/)

# The node of a file: what is hashed and followed as one.
macro(node_of file out)
  if("${file}" MATCHES "^kernels/[^/]+/")
    string(REGEX MATCH "^kernels/[^/]+" ${out} "${file}")
  else()
    set(${out} "${file}")
  endif()
endmacro()

file(GLOB_RECURSE sources RELATIVE ${ROOT} ${ROOT}/simd/* ${ROOT}/kernels/* ${ROOT}/layers/*)
list(SORT sources)
set(functions "")
set(all "${VERSION}\n")
foreach(source IN LISTS sources)
  node_of(${source} node)
  file(SHA256 ${ROOT}/${source} hash)
  string(APPEND text_${node} "${source} ${hash}\n")
  string(APPEND all "${source} ${hash}\n")
  file(STRINGS ${ROOT}/${source} lines REGEX "^#include \"(simd|kernels|layers)/[^\"]+\"")
  foreach(line IN LISTS lines)
    string(REGEX REPLACE "^#include \"([^\"]+)\".*" "\\1" header "${line}")
    if(NOT header IN_LIST contracts)
      node_of(${header} other)
      list(APPEND next_${node} ${other})
    endif()
  endforeach()
  if(source MATCHES "^(layers|simd)/.*\\.h$|^kernels/[^/]*\\.h$")
    string(REGEX REPLACE "\\.h$" ".cc" own ${source})
    if(EXISTS ${ROOT}/${own})
      list(APPEND next_${node} ${own})
    endif()
  elseif(source MATCHES "^layers/.*\\.cc$")
    file(READ ${ROOT}/${source} content)
    string(REGEX MATCHALL "\nvoid [a-z0-9_]+\\(RoutineList& list[^{};]*{" matches "\n${content}")
    foreach(match IN LISTS matches)
      string(REGEX REPLACE "^\nvoid ([a-z0-9_]+).*" "\\1" function "${match}")
      set(file_${function} ${source})
    endforeach()
    string(REGEX MATCHALL "\n +[a-z0-9_]+\\([a-z]+[,)]" matches "${content}")
    foreach(match IN LISTS matches)
      string(REGEX REPLACE "^\n +([a-z0-9_]+).*" "\\1" function "${match}")
      list(APPEND calls_${node} ${function})
    endforeach()
  elseif(source MATCHES "^layers/[^/]+/routines\\.inc$")
    string(REGEX REPLACE "^layers/([^/]+)/.*" "\\1" type ${source})
    list(APPEND types ${type})
    file(STRINGS ${ROOT}/${source} lines REGEX "^SN_ROUTINE")
    foreach(line IN LISTS lines)
      string(REGEX REPLACE "^SN_ROUTINE\\(([a-z0-9_]+)\\).*" "\\1" function "${line}")
      list(APPEND functions ${function})
    endforeach()
  endif()
endforeach()

# How routines are run and timed.
file(GLOB common RELATIVE ${ROOT} ${ROOT}/base/team.* ${ROOT}/base/thread_pool.* ${ROOT}/tune/measure/profiler.*)
list(SORT common)
set(common_text "")
foreach(source IN LISTS common)
  file(SHA256 ${ROOT}/${source} hash)
  string(APPEND common_text "${source} ${hash}\n")
endforeach()

# The hash of all that is reached from the nodes in `queue`.
macro(hash_from id out)
  set(reached "")
  while(queue)
    list(POP_FRONT queue node)
    if("${seen_${node}}" STREQUAL "${id}")
      continue()
    endif()
    set(seen_${node} ${id})
    list(APPEND reached ${node})
    list(APPEND queue ${next_${node}})
  endwhile()
  list(SORT reached)
  set(text "${common_text}")
  foreach(node IN LISTS reached)
    string(APPEND text "${text_${node}}")
  endforeach()
  string(SHA256 hash "${text}")
  string(SUBSTRING ${hash} 0 16 ${out})
  string(APPEND reach "${id} ${reached}\n")
endmacro()

foreach(source IN LISTS sources)
  node_of(${source} node)
  foreach(function IN LISTS calls_${node})
    if(DEFINED file_${function} AND NOT file_${function} STREQUAL source)
      list(APPEND next_${node} ${file_${function}})
    endif()
  endforeach()
  unset(calls_${node})
  list(REMOVE_DUPLICATES next_${node})
endforeach()
string(SHA256 all_hash "${all}${common_text}")
string(SUBSTRING ${all_hash} 0 16 all_hash)

set(table "")
set(reach "")  # what each hash is of, for tests
foreach(function IN LISTS functions)
  if(NOT DEFINED file_${function})
    message(FATAL_ERROR "a routines.inc names ${function}, but no file below layers/ defines "
                        "`void ${function}(RoutineList& list) {`")
  endif()
  set(queue ${file_${function}})
  hash_from(${function} hash)
  string(APPEND table "    {\"${function}\", \"${hash}\"},\n")
endforeach()
# The naive routines: what all have in common, and the layer type's own reference.
foreach(type IN LISTS types)
  set(queue layers/contract/naive.cc)
  foreach(own layers/${type}/${type}.cc layers/${type}/reference.cc)
    if(EXISTS ${ROOT}/${own})
      list(APPEND queue ${own})
    endif()
  endforeach()
  hash_from(${type}_naive hash)
  string(APPEND table "    {\"${type}_naive\", \"${hash}\"},\n")
endforeach()

if(REACH)
  file(WRITE ${REACH} "${reach}")
endif()
file(CONFIGURE OUTPUT ${OUT} @ONLY CONTENT [[#include <utility>

#include "base/version.h"

namespace softneuro {
std::string_view library_version() { return "@VERSION@"; }
std::string_view kernel_hash() { return "@all_hash@"; }
std::string_view routine_sources(std::string_view function) {
  static constexpr std::pair<std::string_view, std::string_view> table[] = {
@table@  };
  for (const auto& [name, hash] : table) {
    if (name == function) return hash;
  }
  return {};
}
}  // namespace softneuro
]])
