#include "net/step_memory.h"

#include <algorithm>
#include <utility>

namespace softneuro {
namespace {

// Bytes of a union of extents.
size_t covered(std::vector<std::pair<size_t, size_t>>& extents) {
  std::sort(extents.begin(), extents.end());
  size_t total = 0, end = 0;
  for (const auto& [first, last] : extents) {
    const size_t begin = std::max(first, end);
    if (last > begin) total += last - begin, end = last;
  }
  return total;
}

}  // namespace

std::vector<StepMemory> step_memory(const Program& program) {
  const size_t count = program.planned.size();
  std::vector<std::vector<std::pair<size_t, size_t>>> extents(count);
  for (const Value& value : program.values) {
    const MemoryPlace& place = value.place;
    if (value.part || place.home != MemoryPlace::Home::arena) continue;
    const size_t end = place.offset + dtype_bytes(value.schema.dtype, spanned_elements(value.desc.shape, value.strides,
                                                                                       value.schema.layout));
    for (int s = std::max(place.first, 0); s <= place.last && s < static_cast<int>(count); ++s) {
      extents[static_cast<size_t>(s)].emplace_back(place.offset, end);
    }
  }
  std::vector<StepMemory> steps = program.planned;
  int next = -1;
  for (size_t s = count; s-- > 0;) {
    steps[s].blobs = covered(extents[s]);
    // An adapt is made where a layer is to read it.
    if (steps[s].layer >= 0) next = steps[s].layer;
    steps[s].layer = next;
  }
  return steps;
}

}  // namespace softneuro
