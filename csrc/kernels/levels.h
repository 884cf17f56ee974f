// The levels that kernels are built for, and how those of one level are found.
//
// At the end of an op's generic.h, SN_KERNEL_TABLE (simd/simd.h) defines the level's table of kernels. The op's own
// file lists the tables of all levels, for each of which the build makes a file that includes generic.h:
//   SN_KERNEL_LIST(GemmKernels, gemm, SN_VECTOR_LEVELS)
//   const GemmKernels* gemm_kernels(Isa isa) { return find_kernels(gemm_list, isa); }
#pragma once

#include "base/arch.h"
#include "base/error.h"

namespace softneuro {

// Kernels of vectors, kernels of tiles that are multiplied with each other, and what all levels need. CMakeLists.txt
// has the same sets.
#if defined(__x86_64__)
#define SN_VECTOR_LEVELS(X, Table, name) \
  X(scalar, Table, name) SN_IF_avx2(X(avx2, Table, name)) SN_IF_avx512(X(avx512, Table, name))
#define SN_TILE_LEVELS(X, Table, name) X(scalar, Table, name) SN_IF_amx(X(amx, Table, name))
#define SN_DOT_LEVELS(X, Table, name) \
  SN_VECTOR_LEVELS(X, Table, name) SN_IF_avxvnni(X(avxvnni, Table, name)) SN_IF_avx512vnni(X(avx512vnni, Table, name))
#define SN_ALL_LEVELS(X, Table, name) SN_DOT_LEVELS(X, Table, name) SN_IF_amx(X(amx, Table, name))
#else
#if defined(__aarch64__)
#define SN_VECTOR_LEVELS(X, Table, name) X(scalar, Table, name) SN_IF_neon(X(neon, Table, name))
#else
#define SN_VECTOR_LEVELS(X, Table, name) X(scalar, Table, name)
#endif
#define SN_TILE_LEVELS(X, Table, name) X(scalar, Table, name)
#define SN_DOT_LEVELS SN_VECTOR_LEVELS
#define SN_ALL_LEVELS SN_VECTOR_LEVELS
#endif

template <class Table>
struct KernelsOfLevel {
  Isa isa;
  const Table* kernels;
};

#define SN_DECLARE_KERNELS(level, Table, name) extern const Table name##_##level;
#define SN_KERNELS_ENTRY(level, Table, name) {Isa::level, &name##_##level},
// Defines <name>_list.
#define SN_KERNEL_LIST(Table, name, LEVELS) \
  LEVELS(SN_DECLARE_KERNELS, Table, name)   \
  constexpr KernelsOfLevel<Table> name##_list[] = {LEVELS(SN_KERNELS_ENTRY, Table, name)};

// Null where this build lacks the level.
template <class Table, size_t count>
const Table* find_built(const KernelsOfLevel<Table> (&list)[count], Isa isa) {
  for (const KernelsOfLevel<Table>& entry : list) {
    if (entry.isa == isa) return entry.kernels;
  }
  return nullptr;
}
// Null where the machine lacks it, too.
template <class Table, size_t count>
const Table* find_kernels(const KernelsOfLevel<Table> (&list)[count], Isa isa) {
  return isa_available(isa) ? find_built(list, isa) : nullptr;
}
// A function pointer or a struct of them: null, likewise.
template <class Table, size_t count>
Table built_or_none(const KernelsOfLevel<Table> (&list)[count], Isa isa) {
  const Table* kernels = find_built(list, isa);
  return kernels != nullptr ? *kernels : Table{};
}
template <class Table, size_t count>
const Table& need_built(const KernelsOfLevel<Table> (&list)[count], Isa isa, const char* what) {
  if (const Table* kernels = find_built(list, isa)) return *kernels;
  throw Error(std::string(what).append(": no kernels for this level"), std::string(isa_name(isa)));
}

}  // namespace softneuro
