// Instruction-set levels: what the machine offers and what dispatch may use.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

// SN_IF_<level>(...): what is only where the level is built. A build for tests may leave some out (SOFTNEURO_LEVELS in
// CMakeLists.txt), as if no machine had them.
#ifdef SN_WITHOUT_avx2
#define SN_IF_avx2(...)
#else
#define SN_IF_avx2(...) __VA_ARGS__
#endif
#ifdef SN_WITHOUT_avx512
#define SN_IF_avx512(...)
#else
#define SN_IF_avx512(...) __VA_ARGS__
#endif
#ifdef SN_WITHOUT_avxvnni
#define SN_IF_avxvnni(...)
#else
#define SN_IF_avxvnni(...) __VA_ARGS__
#endif
#ifdef SN_WITHOUT_avx512vnni
#define SN_IF_avx512vnni(...)
#else
#define SN_IF_avx512vnni(...) __VA_ARGS__
#endif
#ifdef SN_WITHOUT_amx
#define SN_IF_amx(...)
#else
#define SN_IF_amx(...) __VA_ARGS__
#endif
#ifdef SN_WITHOUT_neon
#define SN_IF_neon(...)
#else
#define SN_IF_neon(...) __VA_ARGS__
#endif

namespace softneuro {

// A level is a named set of CPU features with prerequisites (see isa_prerequisites), not a rung of one ladder: avxvnni
// needs avx2 but not avx512, neon needs neither. Some have no vectors of their own but add to another's: avxvnni and
// avx512vnni are sums of four products of bytes beside avx2's and avx512's vectors, amx is products of tiles of
// bfloat16 and bytes (AMX-BF16, AMX-INT8) beside avx512vnni's. Kernels are made for these one by one.
enum class Isa : unsigned char { scalar, avx2, avx512, neon, avxvnni, avx512vnni, amx };

struct CacheInfo {
  size_t l1d = 0, l2 = 0, l3 = 0;  // bytes, 0 if unknown; l3 is shared by the package
};

std::string_view isa_name(Isa isa);
// Throws Error naming the known levels.
Isa parse_isa(std::string_view name);
// The levels that must be available too for `isa` to be.
std::vector<Isa> isa_prerequisites(Isa isa);
// Every level of vectors that is built, whether the machine has it or not, and the same best first.
std::vector<Isa> all_isas();
std::vector<Isa> isas_best_first();

// The level whose vectors it uses: its own, or those that it adds to.
Isa vectors_of(Isa isa);

// Whether it is a level of this architecture, and built.
bool architecture_has(Isa isa);

// True if CPU and operating system support the level and SOFTNEURO_MAX_ISA (the level itself or one that has it as
// prerequisite, transitively) does not exclude it. The variable is read once, on first use.
bool isa_available(Isa isa);
// Available levels of vectors, best first; scalar is always the last.
const std::vector<Isa>& available_isas();
// Available levels that add to those.
const std::vector<Isa>& available_extensions();
// Width in float32 elements of the channel block that the level's blocked layout uses: 16, 8 or 4.
int isa_block(Isa isa);

// For instance "intel-6-85-4"; stable between runs on one machine type.
const std::string& cpu_id();
std::string cpu_brand();
const CacheInfo& caches();
// Size of L2, for what should stay in it: at least 256 KiB, which it is taken for where it is unknown.
int64_t l2_bytes();
// Physical cores that this process may run on.
int physical_cores();
// Whether threads of this process may at times run on cores that share no cache: it has several last caches, or is a
// guest on a CPU that has, and is not told where it runs.
bool cores_may_be_apart();

}  // namespace softneuro
