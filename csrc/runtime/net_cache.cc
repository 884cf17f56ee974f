#include "runtime/net_cache.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <set>
#include <utility>

namespace softneuro {
namespace {

uint64_t hash_of(std::span<const int64_t> signature) {
  uint64_t hash = signature.size();
  for (const int64_t value : signature) {
    hash = (hash ^ static_cast<uint64_t>(value)) * 0x9E3779B97F4A7C15U;
    hash ^= hash >> 29;
  }
  return hash;
}

bool same(std::span<const int64_t> a, std::span<const int64_t> b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end());
}

}  // namespace

void append_text(Signature& signature, std::string_view text) {
  const size_t at = signature.size();
  signature.resize(at + 1 + (text.size() + 7) / 8);
  signature[at] = static_cast<int64_t>(text.size());
  std::memcpy(signature.data() + at + 1, text.data(), text.size());
}

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

void NetCache::put(Ready ready) {
  const uint64_t hash = hash_of(ready.signature);
  Slots dropped;  // nets are freed outside the lock
  {
    const std::unique_lock lock(mutex_);
    const auto replaced = [&](const Ready& other) {
      if (!same(other.signature, ready.signature)) return false;
      if (other.net == nullptr) return true;
      return ready.net == nullptr ? ready.patience < 0 : other.weight_set == ready.weight_set;
    };
    Slots& slots = slots_[hash];
    const auto first =
        std::stable_partition(slots.begin(), slots.end(), [&](const auto& slot) { return !replaced(*slot->entry); });
    for (auto slot = first; slot != slots.end(); ++slot) {
      --entries_;
      if ((*slot)->entry->net == nullptr) continue;
      --nets_;
      net_bytes_ -= (*slot)->entry->net->stats().own_bytes;
    }
    std::move(first, slots.end(), std::back_inserter(dropped));
    slots.erase(first, slots.end());
    ++entries_;
    if (ready.net != nullptr) ++nets_, net_bytes_ += ready.net->stats().own_bytes;
    slots.push_back(std::make_unique<Slot>(std::make_shared<const Ready>(std::move(ready)), ++clock_));
    make_room(dropped);
  }
}

void NetCache::make_room(Slots& dropped) {
  while (entries_ > limits_.entries || nets_ > limits_.nets || (net_bytes_ > limits_.net_bytes && nets_ > 1)) {
    const bool any = entries_ > limits_.entries;  // else nets alone make room
    Slots* from = nullptr;
    Slots::iterator oldest;
    for (auto& [_, slots] : slots_) {
      for (auto slot = slots.begin(); slot != slots.end(); ++slot) {
        if (!any && (*slot)->entry->net == nullptr) continue;
        if (from == nullptr || (*slot)->used.load() < (*oldest)->used.load()) from = &slots, oldest = slot;
      }
    }
    if (from == nullptr) return;
    --entries_;
    if ((*oldest)->entry->net != nullptr) --nets_, net_bytes_ -= (*oldest)->entry->net->stats().own_bytes;
    dropped.push_back(std::move(*oldest));
    from->erase(oldest);
    std::erase_if(slots_, [](const auto& item) { return item.second.empty(); });
  }
}

template <typename Match, typename Host>
NetCache::Entry NetCache::find_by(std::span<const int64_t> signature, const Match& match, const Host& host) const {
  const std::shared_lock lock(mutex_);
  const auto at = slots_.find(hash_of(signature));
  if (at == slots_.end()) return nullptr;
  for (const auto& slot : at->second) {
    const Ready& ready = *slot->entry;
    if (!same(ready.signature, signature)) continue;
    if (ready.net != nullptr ? !match(ready) || !ready.weights.unchanged() : !host(*slot)) continue;
    slot->used.store(++clock_, std::memory_order_relaxed);
    return slot->entry;
  }
  return nullptr;
}

template <typename Match>
NetCache::Entry NetCache::find_settled(std::span<const int64_t> signature, const Match& match) const {
  Entry found = find_by(
      signature, [&](const Ready& ready) { return !ready.on_trial && match(ready); },
      [](Slot& slot) { return slot.waits(); });
  if (found == nullptr) return nullptr;
  if (found->net != nullptr) hits_.fetch_add(1, std::memory_order_relaxed);
  if (found->earns_ns != 0) earned_.fetch_add(found->earns_ns, std::memory_order_relaxed);
  return found;
}

NetCache::Entry NetCache::find(std::span<const int64_t> signature, std::span<const void* const> weights) const {
  return find_settled(signature, [&](const Ready& ready) { return ready.weights.match(weights); });
}

NetCache::Entry NetCache::find(std::span<const int64_t> signature, uint64_t weight_set) const {
  return find_settled(signature, [&](const Ready& ready) { return ready.weight_set == weight_set; });
}

NetCache::Entry NetCache::peek(std::span<const int64_t> signature, uint64_t weight_set) const {
  return find_by(
      signature, [&](const Ready& r) { return r.weight_set == weight_set; },
      [](const Slot& slot) { return slot.entry->patience < 0; });
}

bool NetCache::has(std::span<const int64_t> signature, uint64_t weight_set) const {
  const std::shared_lock lock(mutex_);
  const auto at = slots_.find(hash_of(signature));
  return at != slots_.end() && std::any_of(at->second.begin(), at->second.end(), [&](const auto& slot) {
           return slot->entry->net != nullptr && slot->entry->weight_set == weight_set &&
                  same(slot->entry->signature, signature);
         });
}

template <typename Drop>
void NetCache::drop_if(const Drop& drop) {
  Slots dropped;
  const std::unique_lock lock(mutex_);
  for (auto& [_, slots] : slots_) {
    const auto first =
        std::stable_partition(slots.begin(), slots.end(), [&](const auto& slot) { return !drop(*slot->entry); });
    for (auto slot = first; slot != slots.end(); ++slot) {
      --entries_;
      if ((*slot)->entry->net != nullptr) --nets_, net_bytes_ -= (*slot)->entry->net->stats().own_bytes;
      dropped.push_back(std::move(*slot));
    }
    slots.erase(first, slots.end());
  }
  std::erase_if(slots_, [](const auto& item) { return item.second.empty(); });
}

void NetCache::clear() {
  drop_if([](const Ready&) { return true; });
}

void NetCache::drop_weight_set(uint64_t weight_set) {
  drop_if([&](const Ready& ready) { return ready.net != nullptr && ready.weight_set == weight_set; });
}

void NetCache::drop(std::span<const int64_t> signature) {
  drop_if([&](const Ready& ready) { return same(ready.signature, signature); });
}

std::vector<std::shared_ptr<const Packed>> NetCache::packings() const {
  std::set<std::shared_ptr<const Packed>> found;
  const std::shared_lock lock(mutex_);
  for (const auto& [_, slots] : slots_) {
    for (const auto& slot : slots) {
      if (slot->entry->net == nullptr) continue;
      const auto& own = slot->entry->net->packings();
      found.insert(own.begin(), own.end());
    }
  }
  return {found.begin(), found.end()};
}

size_t NetCache::nets() const {
  const std::shared_lock lock(mutex_);
  return nets_;
}

}  // namespace softneuro
