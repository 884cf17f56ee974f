#include <map>
#include <mutex>

#include "net/net.h"

namespace softneuro {

struct PackedCache::State {
  mutable std::mutex mutex;
  std::map<std::string, std::shared_ptr<const Packed>> entries;
};

PackedCache::PackedCache() : state_(std::make_unique<State>()) {}
PackedCache::~PackedCache() = default;

std::shared_ptr<const Packed> PackedCache::get(int layer, const RoutineChoice& choice, const Problem& problem) {
  const std::string key =
      std::to_string(layer) + "\n" + choice.descriptor() + "\n" + choice.routine->pack_key(problem, choice.tuning);
  // Held while packing, so that two threads never hold two copies of one layer's weights.
  const std::lock_guard lock(state_->mutex);
  const auto found = state_->entries.find(key);
  if (found != state_->entries.end()) return found->second;
  auto packed = choice.routine->pack(problem, choice.tuning);
  state_->entries.emplace(key, packed);
  return packed;
}

size_t PackedCache::bytes() const {
  const std::lock_guard lock(state_->mutex);
  size_t total = 0;
  for (const auto& [key, packed] : state_->entries)
    if (packed != nullptr) total += packed->bytes();
  return total;
}

}  // namespace softneuro
