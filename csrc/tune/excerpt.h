// A part of a long layer that tells which routines are worth timing for all of it.
#pragma once

#include <optional>

#include "layers/layer.h"

namespace softneuro {

// The same layer on a part of its images or rows; nothing if it takes little time anyway, has few of them, or is not
// defined on a part.
std::optional<Problem> excerpt(const Problem& problem);

}  // namespace softneuro
