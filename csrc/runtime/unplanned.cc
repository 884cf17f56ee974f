#include "runtime/unplanned.h"

#include <algorithm>
#include <functional>

namespace softneuro {
namespace {

constexpr double most_unasked_s = 0.5;  // of host time, before what is saved is for others, too

bool same_ones(std::span<const int64_t> a, std::span<const int64_t> b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](int64_t x, int64_t y) { return (x == 1) == (y == 1); });
}

}  // namespace

Unplanned::Mark Unplanned::mark_of(const std::string& structure) {
  return std::max<Mark>(std::hash<std::string>()(structure), 1);
}

Unplanned::Item* Unplanned::find(Mark mark, std::span<const int64_t> signature) {
  const auto found = std::find_if(items_.rbegin(), items_.rend(), [&](const Item& item) {
    return mark != 0 ? item.mark == mark : same_ones(item.like, signature);
  });
  return found == items_.rend() ? nullptr : &*found;
}

bool Unplanned::has(Mark mark) const {
  return std::any_of(items_.begin(), items_.end(), [&](const Item& item) { return item.mark == mark; });
}

Unplanned::Item& Unplanned::add(Mark mark, int layers, const Signature& like) {
  auto item = std::find_if(items_.begin(), items_.end(), [&](const Item& known) { return known.mark == mark; });
  if (item == items_.end()) {
    if (items_.size() == most) planned(items_.front().mark);
    item = items_.insert(items_.end(), Item{.mark = mark, .layers = layers, .host_s = 0, .like = {}});
  }
  items_.splice(items_.end(), items_, item);
  item->like = like;
  return *item;
}

void Unplanned::planned(Mark mark) {
  items_.remove_if([&](const Item& item) { return item.mark == mark; });
  if (saving_for_ == mark) saving_for_ = 0, saved_ns_ = 0;
}

void Unplanned::save(const Item& item, int64_t ns) {
  if (saving_for_ == 0) saving_for_ = item.mark, unasked_s_ = 0;
  if (saving_for_ == item.mark) saved_ns_ = ns;
}

int64_t Unplanned::saved(const Item* other_than) const {
  return other_than != nullptr && other_than->mark == saving_for_ ? 0 : saved_ns_;
}

void Unplanned::host_ran(Item* item, double seconds) {
  if (item != nullptr) item->host_s += seconds;
  if (saving_for_ == 0) return;
  unasked_s_ = item != nullptr && item->mark == saving_for_ ? 0 : unasked_s_ + seconds;
  if (unasked_s_ > most_unasked_s) saving_for_ = 0, saved_ns_ = 0;
}

}  // namespace softneuro
