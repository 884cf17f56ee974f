#include "net/memory_plan.h"

#include <algorithm>
#include <cstdint>
#include <numeric>

#include "base/arena.h"
#include "base/error.h"

namespace softneuro {
namespace {

constexpr size_t align_up(size_t bytes) {
  return (bytes + AlignedBuffer::alignment - 1) / AlignedBuffer::alignment * AlignedBuffer::alignment;
}

// Values that share one piece of memory.
struct Piece {
  std::vector<int> members;
  size_t bytes = 0;
  int read_only = -1;  // the value that owns the memory
  int output = -1;

  bool movable() const { return read_only < 0 && output < 0; }
};

class Planner {
 public:
  Planner(std::span<const PlanValue> values, std::span<const MemoryStep> steps, int arenas)
      : values_(values), steps_(steps), arenas_(arenas) {
    const size_t count = values.size();
    places_.resize(count);
    piece_of_.resize(count);
    std::iota(piece_of_.begin(), piece_of_.end(), 0);
    pieces_.resize(count);
    for (size_t v = 0; v < count; ++v) {
      const int id = static_cast<int>(v);
      pieces_[v] = {{id}, values[v].bytes, values[v].read_only ? id : -1, -1};
      places_[v].content = id;
      places_[v].first = places_[v].last = -1;
    }
    for (size_t s = 0; s < steps.size(); ++s) {
      const int now = static_cast<int>(s);
      for (int read : steps[s].reads) place(read).last = now;
      for (int write : steps[s].writes) place(write).first = place(write).last = now;
    }
    for (size_t v = 0; v < count; ++v)
      if (values[v].output >= 0) places_[v].last = static_cast<int>(steps.size());
  }

  MemoryPlan plan() {
    // Views first, as they are no choice; outputs next, since a copy to the caller can never be avoided otherwise.
    for (const MemoryStep& step : steps_)
      if (step.kind == MemoryStep::Kind::view &&
          !merge({.inner = step.writes[0], .outer = step.reads[0], .at = step.offsets[0], .same_content = true}))
        throw Error("internal: a view does not fit its source");
    for (const MemoryStep& step : steps_) update(step);
    for (size_t v = 0; v < values_.size(); ++v) give_output(static_cast<int>(v));
    for (const MemoryStep& step : steps_)
      if (step.kind == MemoryStep::Kind::gather)
        for (size_t k = 0; k < step.reads.size(); ++k)
          merge({.inner = step.reads[k], .outer = step.writes[0], .at = step.offsets[k], .same_content = true});
    for (const MemoryStep& step : steps_)
      if (step.inplace >= 0) work_in_place(step);
    return layout();
  }

 private:
  struct Merge {
    int inner, outer;  // inner's piece moves into outer's
    size_t at;         // so that inner is `at` bytes behind outer's start
    bool same_content;
    int dying = -1, born = -1;  // at one step, in place
  };

  MemoryPlace& place(int value) { return places_[static_cast<size_t>(value)]; }
  size_t bytes(int value) const { return values_[static_cast<size_t>(value)].bytes; }
  Piece& piece(int value) { return pieces_[static_cast<size_t>(piece_of_[static_cast<size_t>(value)])]; }

  void give_output(int v) {
    const int output = values_[static_cast<size_t>(v)].output;
    Piece& whole = piece(v);
    if (output >= 0 && whole.movable() && whole.bytes == bytes(v)) whole.output = output;
  }

  void update(const MemoryStep& step) {
    for (size_t k = 0; k < step.updates.size(); ++k) {
      if (step.updates[k] < 0) continue;
      const int src = step.reads[static_cast<size_t>(step.updates[k])], dst = step.writes[k];
      const bool same_size = bytes(src) == bytes(dst), ends = place(src).last == place(dst).first;
      if (!same_size || !ends || std::count(step.reads.begin(), step.reads.end(), src) > 1 ||
          !merge({.inner = dst, .outer = src, .at = 0, .same_content = false, .dying = src, .born = dst})) {
        throw Error("an output is declared to be an input's memory, which is read again afterwards", {},
                    "read it before the layer that updates it");
      }
    }
  }

  void work_in_place(const MemoryStep& step) {
    const int src = step.reads[static_cast<size_t>(step.inplace)], dst = step.writes[0];
    if (bytes(src) != bytes(dst) || place(src).last != place(dst).first) return;
    if (std::count(step.reads.begin(), step.reads.end(), src) > 1) return;
    if (piece(src).read_only >= 0 || piece(dst).read_only >= 0) return;
    if (merge({.inner = dst, .outer = src, .at = 0, .same_content = false, .dying = src, .born = dst})) return;
    merge({.inner = src, .outer = dst, .at = 0, .same_content = false, .dying = src, .born = dst});
  }

  bool merge(const Merge& m) {
    const int from = piece_of_[static_cast<size_t>(m.inner)], to = piece_of_[static_cast<size_t>(m.outer)];
    Piece& moved = pieces_[static_cast<size_t>(from)];
    Piece& kept = pieces_[static_cast<size_t>(to)];
    if (from == to || !moved.movable()) return false;
    if (values_[static_cast<size_t>(m.inner)].arena != values_[static_cast<size_t>(m.outer)].arena) return false;
    const size_t target = place(m.outer).offset + m.at;
    if (target < place(m.inner).offset) return false;
    const size_t shift = target - place(m.inner).offset;
    if (shift + moved.bytes > kept.bytes) return false;
    const int inner_content = place(m.inner).content, outer_content = place(m.outer).content;
    for (int a : moved.members)
      for (int b : kept.members) {
        const MemoryPlace &x = place(a), &y = place(b);
        const size_t begin = std::max(x.offset + shift, y.offset);
        const size_t end = std::min(x.offset + shift + bytes(a), y.offset + bytes(b));
        if (begin >= end) continue;
        if (m.same_content && x.content == inner_content && y.content == outer_content) {
          // Inside inner both hold its data. Elsewhere nothing is known, even if they never meet: later checks rely on
          // values of one content agreeing wherever they overlap.
          if (begin >= target && end <= target + bytes(m.inner)) continue;
          return false;
        }
        if (x.last < y.first || y.last < x.first) continue;
        if ((a == m.dying && b == m.born) || (b == m.dying && a == m.born)) continue;
        return false;
      }
    for (int a : moved.members) {
      MemoryPlace& x = place(a);
      x.offset += shift;
      piece_of_[static_cast<size_t>(a)] = to;
      if (m.same_content && x.content == inner_content) x.content = outer_content;
      kept.members.push_back(a);
    }
    moved = {};
    return true;
  }

  struct Item {
    size_t bytes;
    int first, last;
    int piece, step;  // one of the two, the other is -1
    int arena;
    size_t offset = 0;
  };

  std::vector<Item> items() {
    std::vector<Item> items;
    for (size_t p = 0; p < pieces_.size(); ++p) {
      const Piece& piece = pieces_[p];
      if (piece.members.empty() || !piece.movable() || piece.bytes == 0) continue;
      const int arena = values_[static_cast<size_t>(piece.members[0])].arena;
      Item item{align_up(piece.bytes), INT32_MAX, -1, static_cast<int>(p), -1, arena};
      for (int member : piece.members) {
        item.first = std::min(item.first, place(member).first);
        item.last = std::max(item.last, place(member).last);
      }
      items.push_back(item);
    }
    for (size_t s = 0; s < steps_.size(); ++s)
      if (steps_[s].workspace > 0) {
        const int now = static_cast<int>(s);
        const int arena = values_[static_cast<size_t>(steps_[s].writes[0])].arena;
        items.push_back({align_up(steps_[s].workspace), now, now, -1, now, arena});
      }
    return items;
  }

  // Largest first, each into the smallest gap between those already placed that live at the same time.
  MemoryPlan layout() {
    MemoryPlan plan;
    plan.workspaces.resize(steps_.size());
    plan.arena_bytes.resize(static_cast<size_t>(arenas_));
    std::vector<Item> todo = items(), done;
    std::stable_sort(todo.begin(), todo.end(), [](const Item& a, const Item& b) { return a.bytes > b.bytes; });
    std::vector<size_t> piece_offset(pieces_.size());
    for (Item& item : todo) {
      size_t end = 0, best_gap = SIZE_MAX, best = 0;
      for (const Item& other : done) {  // ascending by offset
        if (other.arena != item.arena || other.last < item.first || item.last < other.first) continue;
        if (other.offset > end && other.offset - end >= item.bytes && other.offset - end < best_gap) {
          best_gap = other.offset - end;
          best = end;
        }
        end = std::max(end, other.offset + other.bytes);
      }
      item.offset = best_gap == SIZE_MAX ? end : best;
      size_t& size = plan.arena_bytes[static_cast<size_t>(item.arena)];
      size = std::max(size, item.offset + item.bytes);
      if (item.piece >= 0) piece_offset[static_cast<size_t>(item.piece)] = item.offset;
      if (item.step >= 0) plan.workspaces[static_cast<size_t>(item.step)] = item.offset;
      done.insert(std::upper_bound(done.begin(), done.end(), item,
                                   [](const Item& a, const Item& b) { return a.offset < b.offset; }),
                  item);
    }
    for (size_t v = 0; v < values_.size(); ++v) {
      const Piece& home = piece(static_cast<int>(v));
      MemoryPlace& x = places_[v];
      if (home.read_only >= 0) {
        x.home = MemoryPlace::Home::own;
        x.root = home.read_only;
      } else if (home.output >= 0) {
        x.home = MemoryPlace::Home::output;
        x.root = home.output;
      } else {
        x.offset += piece_offset[static_cast<size_t>(piece_of_[v])];
      }
    }
    plan.values = std::move(places_);
    return plan;
  }

  std::span<const PlanValue> values_;
  std::span<const MemoryStep> steps_;
  const int arenas_;
  std::vector<MemoryPlace> places_;  // offsets are within the piece until layout()
  std::vector<int> piece_of_;
  std::vector<Piece> pieces_;
};

}  // namespace

MemoryPlan plan_memory(std::span<const PlanValue> values, std::span<const MemoryStep> steps, int arenas) {
  return Planner(values, steps, arenas).plan();
}

}  // namespace softneuro
