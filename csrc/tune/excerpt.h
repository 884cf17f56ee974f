// A part of a long layer that tells which routines are worth timing for all of it.
#pragma once

#include <optional>

#include "layers/layer.h"

namespace softneuro {

// The same layer on a part of its images or rows; nothing if it takes little time anyway or its blobs do not begin with
// one and the same axis of images or rows.
std::optional<Problem> excerpt(const Problem& problem);

}  // namespace softneuro
