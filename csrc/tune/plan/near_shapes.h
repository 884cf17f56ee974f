// Which of a model's known shapes is most like another one, whose plan is worth carrying over.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace softneuro {

// All sizes of a model's inputs, one after the other.
using Sizes = std::vector<int64_t>;

// Index of the known sizes whose relative differences from the wanted ones add up to least, the first of equals. Those
// of another number of sizes are not like them at all.
std::optional<size_t> nearest_shapes(std::span<const int64_t> wanted, std::span<const Sizes> known);

}  // namespace softneuro
