#include "tune/measure/stand_ins.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "base/arena.h"

namespace softneuro {
namespace {

bool values_count(const Routine& routine, const Packing& packing) {
  if (routine.info().exploits_sparsity) return true;
  return std::any_of(packing.sections().begin(), packing.sections().end(), [](const Packing::Section& section) {
    const DTypeKind kind = dtype_kind(section.dtype);
    const bool factors = section.name == "weights" || section.name.ends_with(".weights");
    return kind != DTypeKind::real && kind != DTypeKind::quantized && !factors;
  });
}

}  // namespace

bool StandIns::stands_in(const Routine& routine, const Problem& problem, const Tuning& tuning) {
  return !values_count(routine, routine.packing(problem, tuning));
}

std::shared_ptr<const Packed> StandIns::packed(const Routine& routine, const Problem& problem, const Tuning& tuning) {
  Packing packing = routine.packing(problem, tuning);
  if (packing.empty()) return nullptr;
  if (values_count(routine, packing)) return routine.packed(problem, tuning);
  const size_t bytes = packing.bytes();
  return std::make_shared<const Packed>(std::move(packing), memory(bytes));
}

std::shared_ptr<std::byte> StandIns::memory(size_t bytes) {
  if (bytes <= size_) return memory_;
  const auto held = std::make_shared<AlignedBuffer>(std::max(bytes, size_t{1} << 20));
  // Each half of a float is an ordinary number, too, should it be read as bfloat16 or float16.
  auto* halves = static_cast<uint16_t*>(held->data());
  const size_t count = held->size() / sizeof(uint16_t), block = std::min(count, size_t{1} << 19);
  uint32_t state = 12345;
  for (size_t i = 0; i < block; ++i) {
    state = state * 1664525U + 1013904223U;
    halves[i] = static_cast<uint16_t>(0x3e80U | (state >> 25) | ((state >> 8) & 0x8000U));
  }
  for (size_t i = block; i < count; i += block) std::copy_n(halves, std::min(block, count - i), halves + i);
  memory_ = {held, static_cast<std::byte*>(held->data())};
  size_ = held->size();
  return memory_;
}

}  // namespace softneuro
