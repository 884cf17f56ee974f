#include "layers/contract/validate.h"

#include <limits>

namespace softneuro {

void expect_inputs(std::span<const TensorDesc> in, size_t count) {
  if (in.size() != count) {
    throw Error("wants " + std::to_string(count) + " input" + (count == 1 ? "" : "s") + ", got " +
                std::to_string(in.size()));
  }
}

void expect_rank(const Shape& shape, int rank) {
  if (shape.rank() != rank) {
    throw Error("wants an input of rank " + std::to_string(rank) + ", got shape " + shape.str());
  }
}

void expect_axis(std::string_view attribute, int64_t axis, int rank) {
  if (axis < 0 || axis >= rank) {
    throw Error(std::string(attribute) + " " + std::to_string(axis) + " is outside [0, " + std::to_string(rank) + ")");
  }
}

void expect_no_weights(const Layer& layer) {
  if (!layer.weights.empty()) throw Error("takes no weights, got \"" + layer.weights.front().first + "\"");
}

std::vector<int64_t> expect_list(std::string_view attribute, std::vector<int64_t> values, size_t count, int64_t least) {
  if (values.size() != count) {
    throw Error(std::string(attribute) + " wants " + std::to_string(count) + " values, got " + list_text(values));
  }
  for (int64_t value : values) {
    // The upper bound keeps sums and products of sizes away from overflow.
    if (value < least || value > std::numeric_limits<int32_t>::max()) {
      throw Error(std::string(attribute) + " values must be in [" + std::to_string(least) + ", 2^31), got " +
                  list_text(values));
    }
  }
  return values;
}

std::string list_text(std::span<const int64_t> values) {
  std::string text;
  for (int64_t value : values) {
    text += text.empty() ? '[' : ',';
    text += std::to_string(value);
  }
  return text.empty() ? "[]" : text + "]";
}

}  // namespace softneuro
