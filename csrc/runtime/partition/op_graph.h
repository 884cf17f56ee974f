// The host's graph as the partition sees it: which ops layers can do, which the host could do inside a region, and who
// reads what. Each door tells its own graph so, one node per op.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace softneuro {

// The place of a node or value in what is listed by their numbers.
inline size_t slot(int number) { return static_cast<size_t>(number); }

// What a host that computes quantized ops whole makes of an op: see units.h.
enum class UnitRole : uint8_t { none, quantize, dequantize, clamp };

// What becomes of an op that moves elements, at the rim of a region whose other ops do not read it.
enum class AtRim : uint8_t {
  stays,
  leaves,    // the host does it without a copy
  converts,  // it leaves unless the region makes what it converts
};

struct OpNode {
  std::string op;                    // its name in messages
  std::vector<int> inputs, outputs;  // values; -1: left out
  std::vector<int> after;            // nodes that it waits for without reading a tensor of theirs
  std::string refusal;               // why no layers can do it; empty if they can
  bool may_be_step = false;          // the host could do it inside a region
  int ops = 0;                       // that compute, of those that it stands for
  AtRim at_rim = AtRim::stays;
  UnitRole role = UnitRole::none;
  bool with_readers = false;  // it belongs to the region of what reads it, where that is another than its sources'
  bool takes_inside = false;  // it may read values that stay inside a region
  bool has_effect = false;    // it is wanted whether or not anything reads what it makes
};

struct OpValue {
  bool is_output = false;     // of the graph, or something that is no node reads it
  bool stays_inside = false;  // a region that makes it has to have all its readers: it is no tensor of the host's there
};

struct OpGraph {
  std::vector<OpNode> nodes;  // in topological order
  std::vector<OpValue> values;
};

// By node.
struct OpLinks {
  std::vector<std::vector<int>> sources, readers;  // along values
  std::vector<std::vector<int>> after, later;      // OpNode::after, and those that wait so for a node
  std::vector<bool> is_read;                       // an output of the graph depends on it, or something waits for it
};
// Throws Error for a value that does not exist or that is read before it is made.
OpLinks links_of(const OpGraph& graph);

}  // namespace softneuro
