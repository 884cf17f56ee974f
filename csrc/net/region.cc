#include "net/region.h"

#include <pthread.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

namespace softneuro {
namespace {

thread_local std::string region_error;

}  // namespace

void set_region_error(std::string text) { region_error = std::move(text); }

std::string take_region_error() { return std::exchange(region_error, {}); }

WeightGuard::WeightGuard(const void* data, size_t bytes, bool whole)
    : data_(data), bytes_(bytes), whole_(whole || bytes <= small) {
  const auto* from = static_cast<const std::byte*>(data);
  if (whole_) {
    kept_.assign(from, from + bytes);
    return;
  }
  kept_.resize(places * place);
  for (size_t i = 0; i < places; ++i) std::memcpy(kept_.data() + i * place, from + offset(i), place);
}

bool WeightGuard::unchanged() const {
  const auto* now = static_cast<const std::byte*>(data_);
  if (whole_) return bytes_ == 0 || std::memcmp(kept_.data(), now, bytes_) == 0;
  for (size_t i = 0; i < places; ++i) {
    if (std::memcmp(kept_.data() + i * place, now + offset(i), place) != 0) return false;
  }
  return true;
}

bool RegionEntry::weights_match(std::span<const void* const> data) const {
  if (data.size() != weights.size()) return false;
  for (size_t i = 0; i < data.size(); ++i) {
    if (weights[i].data() != data[i]) return false;
  }
  return true;
}

bool RegionEntry::weights_unchanged() const {
  return std::all_of(weights.begin(), weights.end(), [](const WeightGuard& guard) { return guard.unchanged(); });
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
  std::vector<const void*> data;
  for (const WeightGuard& guard : entry.weights) data.push_back(guard.data());
  auto shared = std::make_shared<const RegionEntry>(std::move(entry));
  std::vector<std::unique_ptr<Slot>> dropped;  // nets are freed outside the lock
  const std::unique_lock lock(mutex_);
  auto& slots = regions_[region].slots;
  const auto replaced = std::partition(slots.begin(), slots.end(), [&](const auto& slot) {
    return slot->entry->signature != shared->signature || !slot->entry->weights_match(data);
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

std::shared_ptr<const RegionEntry> RegionTable::find(std::string_view region, std::span<const int64_t> signature,
                                                     std::span<const void* const> weights) {
  const std::shared_lock lock(mutex_);
  const auto at = regions_.find(region);
  if (at == regions_.end()) return nullptr;
  for (const auto& slot : at->second.slots) {
    const RegionEntry& entry = *slot->entry;
    if (!std::equal(signature.begin(), signature.end(), entry.signature.begin(), entry.signature.end())) continue;
    if (!entry.weights_match(weights)) continue;
    if (!entry.weights_unchanged()) return nullptr;
    slot->used.store(++clock_, std::memory_order_relaxed);
    at->second.hits.fetch_add(1, std::memory_order_relaxed);
    return slot->entry;
  }
  return nullptr;
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
