#include "runtime/weight_set.h"

#include <algorithm>
#include <mutex>
#include <numeric>
#include <shared_mutex>
#include <utility>

#include "base/hash.h"
#include "base/log.h"
#include "base/memory_snapshot.h"

namespace softneuro {
namespace {

// They stand here alone, as libraries that share this one may not share inline variables.
std::atomic<uint64_t> changes_found{0}, identities{0};

// Rows of equal length and distance that are hashed together.
struct Slice {
  const std::byte* at;
  uint32_t row_bytes, rows;
  int64_t stride;  // bytes between rows
  uint64_t hash;

  uint64_t hash_now() const {
    uint64_t found = 0;
    for (uint32_t row = 0; row < rows; ++row) found = bytes_hash64(at + row * stride, row_bytes, found);
    return found;
  }
};

void add_rows(const std::byte* at, size_t row_bytes, int64_t rows, int64_t stride, std::vector<Slice>& slices) {
  constexpr size_t most = WatchedWeights::slice_bytes;
  if (row_bytes > most) {
    for (int64_t row = 0; row < rows; ++row) {
      for (size_t done = 0; done < row_bytes; done += most) {
        const size_t bytes = std::min(most, row_bytes - done);
        slices.push_back({at + row * stride + done, static_cast<uint32_t>(bytes), 1, 0, 0});
      }
    }
    return;
  }
  const auto together = static_cast<int64_t>(most / row_bytes);
  for (int64_t row = 0; row < rows; row += together) {
    const auto count = static_cast<uint32_t>(std::min(together, rows - row));
    slices.push_back({at + row * stride, static_cast<uint32_t>(row_bytes), count, stride, 0});
  }
}

// Places of a tensor's to compare each time, and all of it in slices unless these are all.
void add_piece(const WatchedWeights::Piece& piece, MemorySnapshot& places, std::vector<Slice>& slices) {
  struct Axis {
    int64_t size, stride;
  };
  std::vector<Axis> axes;  // the innermost first
  for (size_t i = 0; i < piece.sizes.size(); ++i) {
    if (piece.sizes[i] == 0) return;
    // Repeated elements are the same memory.
    if (piece.sizes[i] > 1 && piece.strides[i] > 0) axes.push_back({piece.sizes[i], piece.strides[i]});
  }
  std::sort(axes.begin(), axes.end(), [](const Axis& a, const Axis& b) { return a.stride < b.stride; });
  int64_t together = 1;
  size_t inner = 0;
  for (; inner < axes.size() && axes[inner].stride == together; ++inner) together *= axes[inner].size;
  const size_t row_bytes = static_cast<size_t>(together) * piece.element_bytes;
  const auto step = [&](size_t axis) { return axes[axis].stride * static_cast<int64_t>(piece.element_bytes); };
  const auto* at = static_cast<const std::byte*>(piece.data);
  const bool dense = inner == axes.size();
  if (dense && (piece.whole || row_bytes <= MemorySnapshot::small)) return places.add(at, row_bytes);
  places.sample(at, row_bytes);
  if (dense) return add_rows(at, row_bytes, 1, 0, slices);
  std::vector<int64_t> index(axes.size(), 0);
  for (;;) {
    add_rows(at, row_bytes, axes[inner].size, step(inner), slices);
    size_t axis = inner + 1;
    for (; axis < axes.size(); ++axis) {
      at += step(axis);
      if (++index[axis] < axes[axis].size) break;
      at -= step(axis) * axes[axis].size;
      index[axis] = 0;
    }
    if (axis == axes.size()) return;
  }
}

}  // namespace

struct WatchedWeights::Snapshot {
  std::vector<Piece> pieces;
  MemorySnapshot places;
  std::vector<Slice> slices;
  size_t next = 0;

  // Whether it is of these. What one net wants to be compared whole does no harm to another.
  bool still_is(const std::vector<Piece>& others) {
    const auto same = [](const Piece& a, const Piece& b) { return a.is_memory_of(b); };
    if (!std::equal(pieces.begin(), pieces.end(), others.begin(), others.end(), same) || !places.unchanged())
      return false;
    for (size_t i = 0; i < pieces.size(); ++i) {
      std::vector<Slice> known;
      if (others[i].whole && !pieces[i].whole) add_piece(others[i], places, known);
      pieces[i].whole |= others[i].whole;
    }
    return true;
  }
};

WatchedWeights::WatchedWeights(NowNs now) : now_(std::move(now)), identity_(++identities) {}
WatchedWeights::~WatchedWeights() = default;

WeightSet WatchedWeights::learn(std::vector<Piece> pieces, bool slices) {
  for (;;) {
    uint64_t epoch = 0;
    {
      const std::unique_lock lock(mutex_);
      if (snapshot_ != nullptr && snapshot_->still_is(pieces)) return {identity_, epoch_};
      if (snapshot_ != nullptr) forget();
      epoch = epoch_;
    }
    // Without the lock, as long as it takes: calls of other nets look meanwhile.
    auto made = std::make_unique<Snapshot>();
    for (const Piece& piece : pieces) add_piece(piece, made->places, made->slices);
    if (!slices) made->slices.clear();
    const int64_t start = now_();
    for (Slice& slice : made->slices) slice.hash = slice.hash_now();
    const auto count = static_cast<int64_t>(made->slices.size());
    const int64_t price = count == 0 ? never : std::max<int64_t>((now_() - start) / count, 1);
    made->pieces = pieces;
    const std::unique_lock lock(mutex_);
    if (epoch != epoch_ || snapshot_ != nullptr) continue;  // another thread has come between
    price_ = price;
    slices_ = made->slices.size();
    credit_ = 0;
    snapshot_ = std::move(made);
    return {identity_, epoch_};
  }
}

void WatchedWeights::forget() {
  price_ = never;
  slices_ = 0;
  snapshot_ = nullptr;
  ++epoch_;
}

void WatchedWeights::changed() {
  const std::unique_lock lock(mutex_);
  forget();
}

WeightSet WatchedWeights::look() {
  WeightSet seen{identity_, 0};
  bool in_slices = false;
  {
    const std::shared_lock lock(mutex_);
    seen.epoch = epoch_;
    if (snapshot_ == nullptr) return seen;
    if (snapshot_->places.unchanged()) {
      if (!slices_are_due() || compare_slices(*snapshot_)) return seen;
      in_slices = true;
    }
  }
  {
    const std::unique_lock lock(mutex_);
    if (epoch_ != seen.epoch) return {identity_, epoch_};  // another thread has found it, too
    forget();
    seen.epoch = epoch_;
  }
  if (in_slices) {
    ++changes_found;
    log_warning(
        "part of a weight has been changed where neither its version counter nor the places that each call compares "
        "have shown it; results since then may be those of the weight before. Nets are made anew from here on; "
        "refresh(model) after such a change does so at once");
  }
  return seen;
}

// Whether those that are due are what they were.
bool WatchedWeights::compare_slices(Snapshot& snapshot) {
  const std::unique_lock turn(turn_, std::try_to_lock);
  if (!turn) return true;  // another thread is at it
  const std::vector<Slice>& slices = snapshot.slices;
  const int64_t start = now_(), credit = credit_, price = price_;
  bool same = true;
  int64_t took = 0, count = 0;
  while (same && (count == 0 || (took + price <= credit && count < static_cast<int64_t>(slices.size())))) {
    const Slice& slice = slices[snapshot.next];
    same = slice.hash_now() == slice.hash;
    snapshot.next = (snapshot.next + 1) % slices.size();
    took = now_() - start;
    ++count;
  }
  if (!same) return false;
  // One that was interrupted is no sign of dear ones, and the interruption is not for runs to pay.
  const int64_t each = std::min(took / count, 4 * price);
  price_ = (3 * price + each) / 4 + 1;
  credit_ = credit - each * count;
  ++looks_;
  return true;
}

int64_t WatchedWeights::calls_to_see_all(int64_t run_ns) const {
  const auto slices = static_cast<int64_t>(slices_.load());
  if (slices == 0) return 0;
  const int64_t paid = std::max<int64_t>(run_ns / share, 1), price = price_;
  const int64_t at_once = std::min(paid / price, slices);  // that one call compares
  return at_once > 0 ? (slices + at_once - 1) / at_once : (slices * price + paid - 1) / paid;
}

uint64_t WatchedWeights::found() { return changes_found; }

size_t WatchedWeights::bytes() const {
  const std::shared_lock lock(mutex_);
  if (snapshot_ == nullptr) return 0;
  return std::accumulate(snapshot_->slices.begin(), snapshot_->slices.end(), size_t{0},
                         [](size_t sum, const Slice& s) { return sum + size_t{s.row_bytes} * s.rows; });
}

void WeightTable::add(Addresses addresses, std::shared_ptr<WatchedWeights> weights) {
  const std::unique_lock lock(mutex_);
  sets_[std::move(addresses)] = std::move(weights);
}

void WeightTable::drop(uint64_t identity) {
  const std::unique_lock lock(mutex_);
  std::erase_if(sets_, [&](const auto& entry) { return entry.second->identity() == identity; });
}

std::optional<WeightSet> WeightTable::look(const Addresses& addresses) const {
  std::shared_ptr<WatchedWeights> found;
  {
    const std::shared_lock lock(mutex_);
    const auto at = sets_.find(addresses);
    if (at == sets_.end()) return std::nullopt;
    found = at->second;
  }
  return found->look();
}

}  // namespace softneuro
