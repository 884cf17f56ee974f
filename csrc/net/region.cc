#include "net/region.h"

#include <pthread.h>

#include <algorithm>
#include <new>
#include <utility>

namespace softneuro {
namespace {

thread_local std::string region_error;

}  // namespace

void set_region_error(std::string text) { region_error = std::move(text); }

std::string take_region_error() { return std::exchange(region_error, {}); }

void WeightGuards::add(const void* data, size_t bytes, bool whole) {
  constexpr size_t small = 256, places = 4, place = 16;  // bytes, count, bytes
  const auto* const first = static_cast<const std::byte*>(data);
  data_.push_back(data);
  if (whole || bytes <= small) return picture_.add(first, bytes);
  for (size_t i = 0; i < places; ++i) picture_.add(first + (bytes - place) / (places - 1) * i, place);
}

bool WeightGuards::match(std::span<const void* const> data) const {
  return std::equal(data_.begin(), data_.end(), data.begin(), data.end());
}

RegionTable::RegionTable() {
  // A child forked while another thread held the lock would wait for ever. The lock knows its owner's thread id, which
  // is another one in the child: there it is made anew.
  pthread_atfork([] { global().mutex_.lock(); }, [] { global().mutex_.unlock(); },
                 [] { new (&global().mutex_) std::shared_mutex; });
}

RegionTable& RegionTable::global() {
  static auto* table = new RegionTable;  // never destroyed: ops may run while the process ends
  return *table;
}

void RegionTable::put(const std::string& region, RegionEntry entry, size_t capacity) {
  const std::vector<const void*> data = entry.weights.addresses();
  entry.weights.list(entry.looked_at);
  auto shared = std::make_shared<const RegionEntry>(std::move(entry));
  std::vector<std::unique_ptr<Slot>> dropped;  // nets are freed outside the lock
  const std::unique_lock lock(mutex_);
  auto& slots = regions_[region].slots;
  const auto replaced = std::partition(slots.begin(), slots.end(), [&](const auto& slot) {
    return slot->entry->signature != shared->signature || !slot->entry->weights.match(data);
  });
  std::move(replaced, slots.end(), std::back_inserter(dropped));
  slots.erase(replaced, slots.end());
  slots.push_back(std::make_unique<Slot>(std::move(shared), ++clock_));
  if (slots.size() > capacity) {
    const auto oldest = std::min_element(slots.begin(), slots.end(),
                                         [](const auto& a, const auto& b) { return a->used.load() < b->used.load(); });
    dropped.push_back(std::move(*oldest));
    slots.erase(oldest);
  }
}

template <typename Match>
std::shared_ptr<const RegionEntry> RegionTable::find_by(std::string_view region, std::span<const int64_t> signature,
                                                        const Match& match) {
  const std::shared_lock lock(mutex_);
  const auto at = regions_.find(region);
  if (at == regions_.end()) return nullptr;
  for (const auto& slot : at->second.slots) {
    const RegionEntry& entry = *slot->entry;
    if (!std::equal(signature.begin(), signature.end(), entry.signature.begin(), entry.signature.end())) continue;
    if (!match(entry)) continue;
    if (!entry.weights.unchanged()) return nullptr;
    slot->used.store(++clock_, std::memory_order_relaxed);
    at->second.hits.fetch_add(1, std::memory_order_relaxed);
    return slot->entry;
  }
  return nullptr;
}

std::shared_ptr<const RegionEntry> RegionTable::find(std::string_view region, std::span<const int64_t> signature,
                                                     std::span<const void* const> weights) {
  return find_by(region, signature, [&](const RegionEntry& entry) { return entry.weights.match(weights); });
}

std::shared_ptr<const RegionEntry> RegionTable::find(std::string_view region, std::span<const int64_t> signature,
                                                     uint64_t weight_set) {
  return find_by(region, signature, [&](const RegionEntry& entry) { return entry.weight_set == weight_set; });
}

void RegionTable::drop(std::string_view region) {
  std::vector<std::unique_ptr<Slot>> dropped;
  const std::unique_lock lock(mutex_);
  const auto at = regions_.find(region);
  if (at == regions_.end()) return;
  dropped = std::move(at->second.slots);
  regions_.erase(at);
}

void RegionTable::clear(std::string_view region) {
  std::vector<std::unique_ptr<Slot>> dropped;
  const std::unique_lock lock(mutex_);
  if (const auto at = regions_.find(region); at != regions_.end()) dropped = std::exchange(at->second.slots, {});
}

void RegionTable::drop_weight_set(std::string_view region, uint64_t weight_set) {
  std::vector<std::unique_ptr<Slot>> dropped;
  const std::unique_lock lock(mutex_);
  const auto at = regions_.find(region);
  if (at == regions_.end()) return;
  auto& slots = at->second.slots;
  const auto kept = std::partition(slots.begin(), slots.end(),
                                   [&](const auto& slot) { return slot->entry->weight_set != weight_set; });
  std::move(kept, slots.end(), std::back_inserter(dropped));
  slots.erase(kept, slots.end());
}

size_t RegionTable::entries(std::string_view region) const {
  const std::shared_lock lock(mutex_);
  const auto at = regions_.find(region);
  return at == regions_.end() ? 0 : at->second.slots.size();
}

uint64_t RegionTable::hits(std::string_view region) const {
  const std::shared_lock lock(mutex_);
  const auto at = regions_.find(region);
  return at == regions_.end() ? 0 : at->second.hits.load(std::memory_order_relaxed);
}

}  // namespace softneuro
