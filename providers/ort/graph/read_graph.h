// From the runtime's graph to plain data.
#pragma once

#include "base/arena.h"
#include "providers/ort/abi/abi.h"
#include "providers/ort/graph/host_graph.h"

namespace softneuro::ort {

// Constants borrow the runtime's memory, which lives until the end of Compile: see keep_constants().
HostGraph read_graph(const OrtGraph* graph);
// Copies the memory of every constant, so that the graph outlives the runtime's.
void keep_constants(HostGraph& graph);

// The attribute of EPContext nodes that read_graph() leaves out.
inline constexpr char payload_attribute[] = "ep_cache_context";
// A text attribute that may hold any bytes; the runtime may add a zero. Throws Error if there is none.
AlignedBuffer read_bytes(const OrtNode* node, const char* name);

std::vector<int64_t> dimensions(const OrtTensorTypeAndShapeInfo* info);
std::vector<int64_t> read_integers(const OrtOpAttr* attribute);
std::string read_text(const OrtOpAttr* attribute);

// Names of a node's inputs or outputs, in order; empty where one is left out.
std::vector<std::string> node_values(const OrtNode* node, bool outputs);

// Shape and element type of a tensor at run time.
struct TensorInfo {
  ElementType type;
  std::vector<int64_t> dims;
};
TensorInfo tensor_info(const OrtValue* value);

}  // namespace softneuro::ort
