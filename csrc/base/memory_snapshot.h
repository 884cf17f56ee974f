// Pieces of a host's memory and what was in them, to see later whether it still is. Each piece is in lines of its own,
// which a net's run has driven out of the caches.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace softneuro {

class MemorySnapshot {
 public:
  static constexpr size_t small = 256;  // bytes of a piece that sample() takes whole

  // A piece that another's content leads to comes after that.
  void add(const std::byte* at, size_t size) {
    if (size == 0) return;
    pieces_.push_back({at, size});
    kept_.insert(kept_.end(), at, at + size);
  }

  // All of a small piece, a few places of others.
  void sample(const std::byte* at, size_t size) {
    constexpr size_t places = 4, place = 16;  // count, bytes
    if (size <= small) return add(at, size);
    for (size_t i = 0; i < places; ++i) add(at + (size - place) / (places - 1) * i, place);
  }

  bool unchanged() const {
    const std::byte* kept = kept_.data();
    for (size_t i = 0; i < pieces_.size(); ++i) {
      if (i + ahead < pieces_.size()) fetch(pieces_[i + ahead]);
      if (std::memcmp(pieces_[i].at, kept, pieces_[i].size) != 0) return false;
      kept += pieces_[i].size;
    }
    return true;
  }

 private:
  // Pieces and bytes of one: together about as many lines as a core can wait for at a time.
  static constexpr size_t ahead = 16, fetched = 256;
  struct Piece {
    const std::byte* at;
    size_t size;
  };
  static void fetch(const Piece& piece) {
    for (size_t at = 0; at < std::min(piece.size, fetched); at += 64) __builtin_prefetch(piece.at + at);
  }

  std::vector<Piece> pieces_;
  std::vector<std::byte> kept_;
};

}  // namespace softneuro
