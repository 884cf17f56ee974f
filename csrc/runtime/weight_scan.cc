#include "runtime/weight_scan.h"

#include <algorithm>
#include <numeric>

#include "base/hash.h"
#include "base/log.h"
#include "base/memory_snapshot.h"

namespace softneuro {
namespace {

std::atomic<uint64_t> changes_found{0};  // here alone, as libraries that share this one may not share inline variables

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
  constexpr size_t most = WeightScan::slice_bytes;
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

// The bytes that lie one after the other from the first on.
size_t add_piece(const WeightScan::Piece& piece, std::vector<Slice>& slices) {
  struct Axis {
    int64_t size, stride;
  };
  std::vector<Axis> axes;  // the innermost first
  for (size_t i = 0; i < piece.sizes.size(); ++i) {
    if (piece.sizes[i] == 0) return 0;
    // Repeated elements are the same memory.
    if (piece.sizes[i] > 1 && piece.strides[i] > 0) axes.push_back({piece.sizes[i], piece.strides[i]});
  }
  std::sort(axes.begin(), axes.end(), [](const Axis& a, const Axis& b) { return a.stride < b.stride; });
  int64_t dense = 1;
  size_t inner = 0;
  for (; inner < axes.size() && axes[inner].stride == dense; ++inner) dense *= axes[inner].size;
  const size_t row_bytes = static_cast<size_t>(dense) * piece.element_bytes;
  const auto step = [&](size_t axis) { return axes[axis].stride * static_cast<int64_t>(piece.element_bytes); };
  const auto* at = static_cast<const std::byte*>(piece.data);
  if (inner == axes.size()) {
    add_rows(at, row_bytes, 1, 0, slices);
    return row_bytes;
  }
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
    if (axis == axes.size()) return row_bytes;
  }
}

}  // namespace

struct WeightScan::Snapshot {
  std::vector<Piece> pieces;
  MemorySnapshot places;
  std::vector<Slice> slices;
  size_t next = 0;
};

WeightScan::WeightScan(NowNs now) : now_(now) {}
WeightScan::~WeightScan() = default;

void WeightScan::learn(std::vector<Piece> pieces) {
  const std::unique_lock lock(mutex_);
  if (snapshot_ != nullptr && snapshot_->pieces == pieces && snapshot_->places.unchanged()) return;
  auto made = std::make_unique<Snapshot>();
  for (const Piece& piece : pieces) {
    made->places.sample(static_cast<const std::byte*>(piece.data), add_piece(piece, made->slices));
  }
  const int64_t start = now_();
  for (Slice& slice : made->slices) slice.hash = slice.hash_now();
  const auto count = static_cast<int64_t>(made->slices.size());
  price_ = count == 0 ? never : std::max<int64_t>((now_() - start) / count, 1);
  made->pieces = std::move(pieces);
  slices_ = made->slices.size();
  credit_ = 0;
  snapshot_ = std::move(made);
  ++epoch_;
}

void WeightScan::forget() {
  const std::unique_lock lock(mutex_);
  price_ = never;
  slices_ = 0;
  snapshot_ = nullptr;
  ++epoch_;
}

bool WeightScan::compare() {
  std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock || snapshot_ == nullptr) return true;  // another thread is at it
  const std::vector<Slice>& slices = snapshot_->slices;
  const int64_t start = now_(), credit = credit_, price = price_;
  bool same = true;
  int64_t took = 0, count = 0;
  while (same && (count == 0 || (took + price <= credit && count < static_cast<int64_t>(slices.size())))) {
    const Slice& slice = slices[snapshot_->next];
    same = slice.hash_now() == slice.hash;
    snapshot_->next = (snapshot_->next + 1) % slices.size();
    took = now_() - start;
    ++count;
  }
  if (same) {
    // One that was interrupted is no sign of dear ones, but it has to be paid for.
    price_ = (3 * price + std::min(took / count, 4 * price)) / 4 + 1;
    credit_ = credit - took;
    ++looks_;
    return true;
  }
  price_ = never;
  slices_ = 0;
  snapshot_ = nullptr;
  ++epoch_;
  ++changes_found;
  lock.unlock();
  log_warning(
      "part of a weight has been changed where neither its version counter nor the places that each call compares have "
      "shown it; results since then may be those of the weight before. Nets are made anew from here on; "
      "refresh(model) after such a change does so at once");
  return false;
}

int64_t WeightScan::calls_to_see_all(int64_t run_ns) const {
  const auto slices = static_cast<int64_t>(slices_.load());
  if (slices == 0) return 0;
  const int64_t paid = std::max<int64_t>(run_ns / share, 1), price = price_;
  const int64_t at_once = std::min(paid / price, slices);  // that one call compares
  return at_once > 0 ? (slices + at_once - 1) / at_once : (slices * price + paid - 1) / paid;
}

uint64_t WeightScan::found() { return changes_found; }

size_t WeightScan::bytes() const {
  const std::shared_lock lock(mutex_);
  if (snapshot_ == nullptr) return 0;
  return std::accumulate(snapshot_->slices.begin(), snapshot_->slices.end(), size_t{0},
                         [](size_t sum, const Slice& s) { return sum + size_t{s.row_bytes} * s.rows; });
}

}  // namespace softneuro
