#include "base/arch.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <set>
#include <thread>

#include "base/built.h"
#include "base/error.h"

#ifdef __linux__
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif
#if defined(__x86_64__) || defined(__i386__)
#define SOFTNEURO_X86 1
#include <cpuid.h>
#endif

namespace softneuro {
namespace {

#ifdef SOFTNEURO_X86
struct Regs {
  uint32_t eax = 0, ebx = 0, ecx = 0, edx = 0;
};

// Zeros for a leaf that the CPU does not have.
Regs cpuid(uint32_t leaf, uint32_t subleaf = 0) {
  Regs r;
  if (!__get_cpuid_count(leaf, subleaf, &r.eax, &r.ebx, &r.ecx, &r.edx)) return {};
  return r;
}

// The register state that the operating system saves, 0 where it does not use XSAVE: a CPU feature whose registers are
// not saved must not be used.
uint64_t os_saved_state() {
  constexpr uint32_t osxsave = 1u << 27;
  if (!(cpuid(1).ecx & osxsave)) return 0;
  uint32_t low, high;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (uint64_t{high} << 32) | low;
}

bool has_all(uint64_t value, uint64_t mask) { return (value & mask) == mask; }

bool cpu_has_avx2() {
  constexpr uint32_t fma_avx_f16c = (1u << 12) | (1u << 28) | (1u << 29), avx2 = 1u << 5;
  constexpr uint64_t ymm_state = 0x6;
  return has_all(os_saved_state(), ymm_state) && has_all(cpuid(1).ecx, fma_avx_f16c) && has_all(cpuid(7).ebx, avx2);
}

bool cpu_has_avx512() {
  constexpr uint32_t f_dq_bw_vl = (1u << 16) | (1u << 17) | (1u << 30) | (1u << 31);
  constexpr uint64_t zmm_state = 0xe6;
  return has_all(os_saved_state(), zmm_state) && has_all(cpuid(7).ebx, f_dq_bw_vl);
}

bool cpu_has_avxvnni() { return has_all(cpuid(7, 1).eax, 1u << 4); }
bool cpu_has_avx512vnni() { return has_all(cpuid(7).ecx, 1u << 11); }

// Linux has a process ask before it may use the tiles, which are 8 KiB more for each of its threads.
bool may_use_tiles() {
#ifdef __linux__
  constexpr long request_permission = 0x1023, tile_data = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  return syscall(SYS_arch_prctl, request_permission, tile_data) == 0;
#else
  return false;
#endif
}

bool cpu_has_amx() {
  constexpr uint32_t bf16_tile_int8 = (1u << 22) | (1u << 24) | (1u << 25), avx512_bf16 = 1u << 5;
  constexpr uint64_t tile_state = 0x60000;
  return has_all(os_saved_state(), tile_state) && has_all(cpuid(7).edx, bf16_tile_int8) &&
         has_all(cpuid(7, 1).eax, avx512_bf16) && may_use_tiles();
}
#endif

// The one table: a new level is a line here, an enumerator, and a line in CMakeLists.txt. Prerequisites come before.
struct Level {
  Isa isa;
  std::string_view name;
  std::vector<Isa> prerequisites;
  int block;
  bool vectors;  // its own
  bool (*supported)();
};

const std::vector<Level>& levels() {
  static const std::vector<Level> table = {
      {Isa::scalar, "scalar", {}, 4, true, [] { return true; }},
#ifdef SOFTNEURO_X86
      {Isa::avx2, "avx2", {Isa::scalar}, 8, true, cpu_has_avx2},
      {Isa::avx512, "avx512", {Isa::scalar, Isa::avx2}, 16, true, cpu_has_avx512},
      {Isa::avxvnni, "avxvnni", {Isa::scalar, Isa::avx2}, 8, false, cpu_has_avxvnni},
      {Isa::avx512vnni, "avx512vnni", {Isa::scalar, Isa::avx2, Isa::avx512}, 16, false, cpu_has_avx512vnni},
      {Isa::amx, "amx", {Isa::scalar, Isa::avx2, Isa::avx512, Isa::avx512vnni}, 16, false, cpu_has_amx},
#elif defined(__aarch64__)
      {Isa::neon, "neon", {Isa::scalar}, 4, true, [] { return true; }},
#endif
  };
  return table;
}

const Level* find_level(Isa isa) {
  for (const Level& level : levels())
    if (level.isa == isa) return &level;
  return nullptr;
}

const Level& level_of(Isa isa) {
  if (const Level* level = find_level(isa)) return *level;
  throw Error("an instruction-set level of another architecture was asked for");
}

// True if `wanted` is `isa` or a prerequisite of it, transitively.
bool implies(Isa isa, Isa wanted) {
  if (isa == wanted) return true;
  const std::vector<Isa>& below = level_of(isa).prerequisites;
  return std::any_of(below.begin(), below.end(), [&](Isa p) { return implies(p, wanted); });
}

bool supported(Isa isa) {
  const Level* level = find_level(isa);
  if (!level || !level->supported()) return false;
  return std::all_of(level->prerequisites.begin(), level->prerequisites.end(), supported);
}

struct Found {
  std::vector<Isa> vectors, extensions;
};

Found detect() {
  const char* text = std::getenv("SOFTNEURO_MAX_ISA");
  const bool clamped = text && *text;
  Isa most = Isa::scalar;
  if (clamped) {
    try {
      most = parse_isa(text);
    } catch (const Error& error) {
      throw Error(error.what(), "SOFTNEURO_MAX_ISA");
    }
  }
  Found found;
  for (const Level& level : levels()) {
    if ((clamped && !implies(most, level.isa)) || !is_built(level.isa) || !supported(level.isa)) continue;
    (level.vectors ? found.vectors : found.extensions).push_back(level.isa);
  }
  std::reverse(found.vectors.begin(), found.vectors.end());
  return found;
}

const Found& found_levels() {
  static const Found found = detect();
  return found;
}

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

#ifdef SOFTNEURO_X86
CacheInfo caches_of_leaf(uint32_t leaf) {
  CacheInfo info;
  for (uint32_t index = 0; index < 16; ++index) {
    const Regs r = cpuid(leaf, index);
    const uint32_t type = r.eax & 31, level = (r.eax >> 5) & 7;  // type 1: data, 2: instruction, 3: unified
    if (type == 0) break;
    const size_t ways = (r.ebx >> 22) + 1, partitions = ((r.ebx >> 12) & 1023) + 1, line = (r.ebx & 4095) + 1;
    const size_t bytes = ways * partitions * line * (size_t{r.ecx} + 1);
    if (level == 1 && type == 1) info.l1d = bytes;
    if (level == 2 && type != 2) info.l2 = bytes;
    if (level == 3 && type != 2) info.l3 = bytes;
  }
  return info;
}
#endif

size_t parse_size(const std::string& text) {  // "32K", "1M"
  char* end = nullptr;
  const size_t number = std::strtoull(text.c_str(), &end, 10);
  return *end == 'K' ? number << 10 : *end == 'M' ? number << 20 : number;
}

CacheInfo caches_of_sysfs() {
  CacheInfo info;
  for (int index = 0; index < 8; ++index) {
    const std::string dir = "/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(index) + "/";
    const std::string level = first_line(dir + "level");
    if (level.empty()) break;
    if (first_line(dir + "type") == "Instruction") continue;
    (level == "1" ? info.l1d : level == "2" ? info.l2 : info.l3) = parse_size(first_line(dir + "size"));
  }
  return info;
}

CacheInfo detect_caches() {
  CacheInfo info;
#ifdef SOFTNEURO_X86
  constexpr uint32_t amd_topology = 1u << 22;
  info = caches_of_leaf(4);
  if (info.l1d == 0 && (cpuid(0x80000001).ecx & amd_topology)) info = caches_of_leaf(0x8000001d);
#endif
  return info.l1d ? info : caches_of_sysfs();
}

// How many groups the CPUs that this process may run on fall into, by a list in sysfs that those of a group have in
// common; one without a list is a group by itself. 0 if unknown.
int cpu_groups([[maybe_unused]] const std::string& list) {
  std::set<std::string> groups;
#ifdef __linux__
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 0;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &set)) continue;
    const std::string number = std::to_string(cpu);
    const std::string members = first_line("/sys/devices/system/cpu/cpu" + number + "/" + list);
    groups.insert(members.empty() ? number : members);
  }
#endif
  return static_cast<int>(groups.size());
}

std::string cpuinfo_field(const std::string& name) {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.rfind(name, 0) == 0 && line.find(": ") != line.npos) return line.substr(line.find(": ") + 2);
  return {};
}

std::string detect_cpu_id() {
#ifdef SOFTNEURO_X86
  const Regs vendor = cpuid(0), version = cpuid(1);
  char name[12];
  std::memcpy(name, &vendor.ebx, 4);
  std::memcpy(name + 4, &vendor.edx, 4);
  std::memcpy(name + 8, &vendor.ecx, 4);
  const std::string_view text(name, 12);
  uint32_t family = (version.eax >> 8) & 15, model = (version.eax >> 4) & 15;
  if (family == 6 || family == 15) model += ((version.eax >> 16) & 15) << 4;
  if (family == 15) family += (version.eax >> 20) & 255;
  const std::string short_name = text == "GenuineIntel" ? "intel" : text == "AuthenticAMD" ? "amd" : "x86";
  return short_name + "-" + std::to_string(family) + "-" + std::to_string(model) + "-" +
         std::to_string(version.eax & 15);
#else
  return "arm-" + cpuinfo_field("CPU implementer") + "-" + cpuinfo_field("CPU part") + "-" +
         cpuinfo_field("CPU revision");
#endif
}

}  // namespace

std::string_view isa_name(Isa isa) { return level_of(isa).name; }

Isa parse_isa(std::string_view name) {
  std::string known;
  for (const Level& level : levels()) {
    if (level.name == name) return level.isa;
    known += (known.empty() ? "" : ", ") + std::string(level.name);
  }
  throw Error("unknown instruction-set level '" + std::string(name) + "'", {}, "known: " + known);
}

std::vector<Isa> isa_prerequisites(Isa isa) { return level_of(isa).prerequisites; }

std::vector<Isa> all_isas() {
  std::vector<Isa> isas;
  for (const Level& level : levels())
    if (level.vectors && is_built(level.isa)) isas.push_back(level.isa);
  return isas;
}

bool architecture_has(Isa isa) { return find_level(isa) != nullptr && is_built(isa); }

std::vector<Isa> isas_best_first() {
  std::vector<Isa> isas = all_isas();
  std::reverse(isas.begin(), isas.end());
  return isas;
}

bool isa_available(Isa isa) {
  const auto has = [&](const std::vector<Isa>& found) {
    return std::find(found.begin(), found.end(), isa) != found.end();
  };
  return has(available_isas()) || has(available_extensions());
}

const std::vector<Isa>& available_isas() { return found_levels().vectors; }
const std::vector<Isa>& available_extensions() { return found_levels().extensions; }

Isa vectors_of(Isa isa) {
  const Level& level = level_of(isa);
  return level.vectors ? isa : vectors_of(level.prerequisites.back());
}

int isa_block(Isa isa) { return level_of(isa).block; }

const std::string& cpu_id() {
  static const std::string id = detect_cpu_id();
  return id;
}

std::string cpu_brand() {
#ifdef SOFTNEURO_X86
  if (cpuid(0x80000000).eax >= 0x80000004) {
    char text[49] = {};
    for (uint32_t part = 0; part < 3; ++part) {
      const Regs r = cpuid(0x80000002 + part);
      std::memcpy(text + 16 * part, &r, 16);
    }
    return text;
  }
#endif
  return cpuinfo_field("model name");
}

const CacheInfo& caches() {
  static const CacheInfo info = detect_caches();
  return info;
}

int64_t l2_bytes() { return static_cast<int64_t>(std::max<size_t>(caches().l2, 256 << 10)); }

int physical_cores() {
  const int cores = cpu_groups("topology/thread_siblings_list");
  return cores > 0 ? cores : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

bool cores_may_be_apart() {
  if (cpu_groups("cache/index3/shared_cpu_list") > 1) return true;
#ifdef SOFTNEURO_X86
  constexpr uint32_t guest = 1u << 31;
  return cpu_id().starts_with("amd-") && (cpuid(1).ecx & guest);
#else
  return false;
#endif
}

}  // namespace softneuro
