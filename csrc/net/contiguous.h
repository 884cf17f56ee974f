// Where blobs are stretches of another's memory, so that no step is needed.
#pragma once

#include <optional>
#include <vector>

#include "graph/graph.h"

namespace softneuro {

// Byte offset of indices [start, end) of an axis inside a blob, if they are one stretch of its memory.
std::optional<size_t> stretch_offset(const Shape& shape, const Schema& schema, int axis, int64_t start, int64_t end);

// Byte offsets of a concat's inputs inside its output; empty unless every one is a stretch.
std::vector<size_t> concat_offsets(const Problem& problem, const Schema& schema);

// True if a blob that is dense in `from` has, without a byte changed, what `to` asks for.
bool same_memory(const Shape& shape, const Schema& from, const Schema& to);

}  // namespace softneuro
