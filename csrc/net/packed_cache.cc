#include <algorithm>
#include <map>
#include <mutex>

#include "base/log.h"
#include "net/net.h"

namespace softneuro {
namespace {

struct Entry {
  std::mutex packing;                  // so that two threads never hold two copies of one layer's weights
  std::weak_ptr<const Packed> packed;  // under the cache's lock
};

}  // namespace

std::string PackedCache::key(const RoutineChoice& choice, const Problem& problem) {
  const Layer& layer = *problem.layer;
  std::string key = choice.routine->descriptor() + "\n" + choice.routine->pack_key(problem, choice.tuning) + "\n" +
                    layer.type + "{" + layer.attrs.str() + "}" + layer.post.str();
  for (const auto& [role, value] : layer.weights) key += "\n" + role + value->shape().str() + value->identity();
  return key;
}

struct PackedCache::State {
  mutable std::mutex mutex;
  std::map<std::string, std::shared_ptr<Entry>> entries;
  std::map<std::string, std::weak_ptr<const Packed>> adopted;
  size_t tidy_at = 256;

  std::shared_ptr<Entry> entry(const std::string& key) {
    const std::lock_guard lock(mutex);
    if (entries.size() >= tidy_at) {
      std::erase_if(entries, [](const auto& e) { return e.second.use_count() == 1 && e.second->packed.expired(); });
      tidy_at = std::max<size_t>(256, 2 * entries.size());
    }
    auto& entry = entries[key];
    if (entry == nullptr) entry = std::make_shared<Entry>();
    return entry;
  }

  std::shared_ptr<const Packed> find(const Entry& entry) const {
    const std::lock_guard lock(mutex);
    return entry.packed.lock();
  }

  std::shared_ptr<const Packed> find_adopted(const std::string& key) const {
    const std::lock_guard lock(mutex);
    const auto found = adopted.find(key);
    return found == adopted.end() ? nullptr : found->second.lock();
  }
};

PackedCache::PackedCache() : state_(std::make_unique<State>()) {}
PackedCache::~PackedCache() = default;

PackedCache& PackedCache::shared() {
  static auto* cache = new PackedCache;  // never destroyed: nets may be prepared while the process ends
  return *cache;
}

std::shared_ptr<const Packed> PackedCache::find(const RoutineChoice& choice, const Problem& problem) const {
  const auto& weights = problem.layer->weights;
  const auto known = [](const auto& weight) { return weight.second->identity_known(); };
  if (weights.empty() || !std::all_of(weights.begin(), weights.end(), known)) return nullptr;
  const auto entry = state_->entry(key(choice, problem));
  return state_->find(*entry);
}

std::shared_ptr<const Packed> PackedCache::get(const RoutineChoice& choice, const Problem& problem) {
  const Packing wanted = choice.routine->packing(problem, choice.tuning);
  if (wanted.empty()) return nullptr;
  if (problem.layer->weights.empty()) return choice.routine->packed(problem, choice.tuning);
  if (auto known = find(choice, problem)) return known;
  // Weights computed on demand stay for as long as they are held here: once for the key and the packing. Those that
  // come from rows need not be computed for either.
  std::vector<ConstantData::Values> held;
  for (const auto& [role, value] : problem.layer->weights) {
    if (!value->has_rows()) held.push_back(value->values());
  }
  const std::string name = key(choice, problem);
  const auto entry = state_->entry(name);
  const std::lock_guard lock(entry->packing);
  if (auto known = state_->find(*entry)) return known;
  auto packed = state_->find_adopted(name);
  if (packed != nullptr && packed->packing().str() != wanted.str()) {
    log_warning("a saved packing for " + choice.descriptor() + " has '" + packed->packing().str() + "', not '" +
                wanted.str() + "': it is packed anew");
    packed = nullptr;
  }
  if (packed == nullptr) packed = choice.routine->packed(problem, choice.tuning);
  const std::lock_guard cache_lock(state_->mutex);
  entry->packed = packed;
  return packed;
}

size_t PackedCache::bytes() const {
  const std::lock_guard lock(state_->mutex);
  size_t total = 0;
  for (const auto& [key, entry] : state_->entries) {
    if (const auto packed = entry->packed.lock()) total += packed->bytes();
  }
  return total;
}

std::vector<PackedCache::Item> PackedCache::items() const {
  const std::lock_guard lock(state_->mutex);
  std::vector<Item> found;
  for (const auto& [key, entry] : state_->entries) {
    if (auto packed = entry->packed.lock()) found.push_back({key, std::move(packed)});
  }
  return found;
}

void PackedCache::adopt(const std::vector<Item>& items) {
  const std::lock_guard lock(state_->mutex);
  std::erase_if(state_->adopted, [](const auto& item) { return item.second.expired(); });
  for (const Item& item : items) state_->adopted[item.key] = item.packed;
}

}  // namespace softneuro
