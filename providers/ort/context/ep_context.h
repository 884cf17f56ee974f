// Compiled models: regions saved as EPContext nodes of a model that the runtime writes, and read from them.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "providers/ort/abi/abi.h"
#include "providers/ort/context/payload.h"

namespace softneuro::ort {

// The runtime's ep.context_* entries.
struct ContextSettings {
  bool write = false, embed = false;
  bool packed = true;  // softneuro.context_packed: packed weights are saved too
  std::string path;    // of the model that is written; may be empty
  std::string prefix;  // of the nodes' partition names
};
ContextSettings read_context_settings(const std::map<std::string, std::string>& entries);

// Whether the node is one that make_context_node() made.
bool is_context_node(const HostNode& node);

// A node that stands for a fused one, to be given to the runtime. `number` tells the regions of a session apart; with
// embed unset the payload goes to a file beside the model. `more` are inputs that the fused node lacks. Throws Error if
// the file cannot be written.
OrtNode* make_context_node(SavedRegion region, const OrtNode* fused, const std::string& model_path, int number,
                           const ContextSettings& settings, const std::vector<std::string>& more);

// The region of a graph's one node. Throws Error, naming the file if there is one.
SavedRegion read_context_node(const HostGraph& graph, const ContextSettings& settings);

}  // namespace softneuro::ort
