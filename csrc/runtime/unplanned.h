// Structures of a region's graphs that no plan is known for: shapes that change the graph itself have one of their own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <span>
#include <string>

#include "runtime/credit.h"
#include "runtime/net_cache.h"

namespace softneuro {

// What waits for a plan, and how much of the credit is left to it meanwhile. Bounded; guarded by its owner.
class Unplanned {
 public:
  using Mark = uint64_t;  // of a structure; 0 is none's
  struct Item {
    Mark mark = 0;
    int layers = 0;
    double host_s = 0;  // that calls which would profit have taken on the host
    Signature like;     // the last signature found to have it
  };

  static Mark mark_of(const std::string& structure);

  // The item of a signature's mark, or of the last signature with extents of 1 in the same places if it has no mark: it
  // is then likely to have the same structure. Null if none waits. The pointer is good until the next add().
  Item* find(Mark mark, std::span<const int64_t> signature);
  bool has(Mark mark) const;
  Item& add(Mark mark, int layers, const Signature& like);
  void planned(Mark mark);

  // Saves for an item's plan, unless it is being saved for another already.
  void save(const Item& item, int64_t ns);
  // What is not to be spent on anything but the item, which may be null.
  int64_t saved(const Item* other_than) const;
  // Calls have taken so long on the host, of those that would profit from the item or from none (null).
  void host_ran(Item* item, double seconds);

 private:
  static constexpr size_t most = 64;

  std::list<Item> items_;  // the newest at the end
  Mark saving_for_ = 0;
  int64_t saved_ns_ = 0;
  double unasked_s_ = 0;  // host time since a call would have profited from what is saved for
};

}  // namespace softneuro
