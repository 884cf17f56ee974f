// Offline memory planning: every blob's place is fixed before the first run.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace softneuro {

// One blob in one schema.
struct PlanValue {
  size_t bytes = 0;
  bool read_only = false;  // a graph input or a constant: has memory of its own, which only a declared update writes
  int output = -1;         // the graph output that it is; such a value lives until the end
  int arena = 0;           // that it lives in if not elsewhere: one per platform
};

struct MemoryStep {
  enum class Kind : unsigned char {
    compute,
    view,    // the written value is reads[0]'s memory from offsets[0] on
    gather,  // reads[k] belongs at offsets[k] of the written value; those that cannot live there are copied
  };
  Kind kind = Kind::compute;
  std::vector<int> reads;
  std::vector<int> writes;
  // By write: the read (by position) whose memory it has by declaration, -1 for none; empty if there are none.
  std::vector<int> updates = {};
  int inplace = -1;  // compute: the read (by position) whose memory may be overwritten by the first write
  std::vector<size_t> offsets;
  size_t workspace = 0;  // bytes that the step's tasks share, needed during the step only
};

struct MemoryPlace {
  enum class Home : unsigned char { arena, output, own };
  Home home = Home::arena;
  int root = -1;      // output: its number; own: the read-only value whose memory it is
  size_t offset = 0;  // bytes from the start of the arena, the output or the read-only value
  int first = 0;      // step that writes it, -1 for read-only values
  int last = 0;       // last step that reads it, the number of steps for an output
  // Values of one content hold the same data where they overlap: views, and concatenations with their parts.
  int content = -1;
};

struct MemoryPlan {
  std::vector<MemoryPlace> values;
  std::vector<size_t> workspaces;   // offset by step, in the arena of its first write
  std::vector<size_t> arena_bytes;  // by arena
};

// Throws Error if memory that is to be updated is read later, or is a constant's.
//
// Two values share bytes only if they hold the same data there, if their lifetimes are disjoint, or if a step that may
// work in place turns one into the other. Nothing is put in place of, or in one piece with, a read-only value but
// views. An output has the caller's memory unless it is a view of less or more than itself: then its home is not
// `output`, and it has to be copied at the end.
MemoryPlan plan_memory(std::span<const PlanValue> values, std::span<const MemoryStep> steps, int arenas = 1);

}  // namespace softneuro
