#include "runtime/net_cache.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <set>
#include <utility>

namespace softneuro {
namespace {

constexpr SignatureHash hash_of;
constexpr SignatureEqual same;

}  // namespace

size_t SignatureHash::operator()(std::span<const int64_t> signature) const {
  uint64_t hash = signature.size();
  for (const int64_t value : signature) {
    hash = (hash ^ static_cast<uint64_t>(value)) * 0x9E3779B97F4A7C15U;
    hash ^= hash >> 29;
  }
  return hash;
}

void append_text(Signature& signature, std::string_view text) {
  const size_t at = signature.size();
  signature.resize(at + 1 + (text.size() + 7) / 8);
  signature[at] = static_cast<int64_t>(text.size());
  std::memcpy(signature.data() + at + 1, text.data(), text.size());
}

void NetCache::put(Ready ready) {
  const size_t hash = hash_of(ready.signature);
  Slots dropped;  // nets are freed outside the lock
  {
    const std::unique_lock lock(mutex_);
    const auto replaced = [&](const Ready& other) {
      if (!same(other.signature, ready.signature)) return false;
      if (other.net == nullptr) return true;
      return ready.net == nullptr ? ready.patience < 0 : other.weights.identity == ready.weights.identity;
    };
    Slots& slots = slots_[hash];
    for (size_t i = slots.size(); i-- > 0;) {
      if (replaced(*slots[i]->entry)) take_out(slots, slots.begin() + static_cast<ptrdiff_t>(i), dropped);
    }
    ++entries_;
    if (ready.net != nullptr) ++nets_, net_bytes_ += ready.net->stats().own_bytes;
    slots.push_back(std::make_unique<Slot>(std::make_shared<const Ready>(std::move(ready)), ++clock_));
    make_room(dropped);
  }
}

void NetCache::take_out(Slots& slots, Slots::iterator slot, Slots& dropped) {
  --entries_;
  if ((*slot)->entry->net != nullptr) --nets_, net_bytes_ -= (*slot)->entry->net->stats().own_bytes;
  dropped.push_back(std::move(*slot));
  slots.erase(slot);
}

void NetCache::drop_oldest(size_t count, bool nets_only, Slots& dropped) {
  std::vector<std::pair<uint64_t, size_t>> ages;  // with the signature's hash
  for (const auto& [hash, slots] : slots_) {
    for (const auto& slot : slots) {
      if (!nets_only || slot->entry->net != nullptr) ages.emplace_back(slot->used.load(), hash);
    }
  }
  count = std::min(count, ages.size());
  std::partial_sort(ages.begin(), ages.begin() + static_cast<ptrdiff_t>(count), ages.end());
  for (size_t i = 0; i < count; ++i) {
    Slots& slots = slots_[ages[i].second];
    take_out(slots, std::find_if(slots.begin(), slots.end(), [&](const auto& s) { return s->used == ages[i].first; }),
             dropped);
    if (slots.empty()) slots_.erase(ages[i].second);
  }
}

// A look at all entries takes long beside a small model's call, so that many go at once. A net takes longer to make.
void NetCache::make_room(Slots& dropped) {
  if (entries_ > limits_.entries) drop_oldest(std::max<size_t>(limits_.entries / 16, 1), false, dropped);
  while (nets_ > limits_.nets || (net_bytes_ > limits_.net_bytes && nets_ > 1)) drop_oldest(1, true, dropped);
}

template <typename Match>
NetCache::Entry NetCache::find_by(std::span<const int64_t> signature, const Match& match) const {
  const std::shared_lock lock(mutex_);
  const auto at = slots_.find(hash_of(signature));
  if (at == slots_.end()) return nullptr;
  for (const auto& slot : at->second) {
    if (!same(slot->entry->signature, signature) || !match(*slot)) continue;
    slot->used.store(++clock_, std::memory_order_relaxed);
    return slot->entry;
  }
  return nullptr;
}

NetCache::Entry NetCache::find(std::span<const int64_t> signature, const WeightSet& weights) const {
  Entry found = find_by(signature, [&](Slot& slot) {
    const Ready& ready = *slot.entry;
    return ready.net != nullptr ? !ready.on_trial && ready.weights == weights : slot.waits();
  });
  if (found == nullptr) return nullptr;
  if (found->net != nullptr) hits_.fetch_add(1, std::memory_order_relaxed);
  if (found->earns_ns != 0) earned_.fetch_add(found->earns_ns, std::memory_order_relaxed);
  return found;
}

NetCache::Entry NetCache::peek(std::span<const int64_t> signature, const WeightSet& weights) const {
  return find_by(signature, [&](const Slot& slot) {
    return slot.entry->net != nullptr ? slot.entry->weights == weights : slot.entry->patience < 0;
  });
}

template <typename Drop>
void NetCache::drop_if(const Drop& drop) {
  Slots dropped;
  const std::unique_lock lock(mutex_);
  for (auto& [_, slots] : slots_) {
    for (size_t i = slots.size(); i-- > 0;) {
      if (drop(*slots[i]->entry)) take_out(slots, slots.begin() + static_cast<ptrdiff_t>(i), dropped);
    }
  }
  std::erase_if(slots_, [](const auto& item) { return item.second.empty(); });
}

void NetCache::clear() {
  drop_if([](const Ready&) { return true; });
}

void NetCache::drop_before(const WeightSet& weights) {
  drop_if([&](const Ready& ready) {
    return ready.net != nullptr && ready.weights.identity == weights.identity && ready.weights.epoch < weights.epoch;
  });
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
