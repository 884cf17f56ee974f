#include "tune/excerpt.h"

#include <span>

#include "base/error.h"
#include "layers/registry.h"
#include "tune/candidates.h"

namespace softneuro {
namespace {

constexpr double long_seconds = 1e-3;  // by the rules' guess, which most machines beat severalfold

struct Cut {
  int axis;
  int64_t parts;
};

// Images, rows of a matrix, or rows of an image: enough of them to stand for all.
std::optional<Cut> cut_of(const Shape& shape) {
  if (shape.rank() > 1 && shape[0] >= 8) return Cut{0, 8};
  if (shape.rank() == 4 && shape[2] >= 64) return Cut{2, 4};
  return {};
}

}  // namespace

std::optional<Problem> excerpt(const Problem& problem) {
  const Layer& layer = *problem.layer;
  const size_t residual = layer.post.residual ? 1 : 0;
  if (layer.host != nullptr || layer.weights.empty() || problem.in.size() != 1 + residual) return {};
  const auto cut = cut_of(problem.in.front().shape);
  if (!cut || problem.outs.size() != 1 || estimate_seconds(problem, 0) < long_seconds) return {};
  const Shape& whole = problem.out().shape;
  if (cut->axis >= whole.rank()) return {};
  Problem part = problem;
  part.in.front().shape[cut->axis] /= cut->parts;
  // What a layer's attributes say of sizes may hold for the whole alone.
  Shape shape;
  try {
    shape = infer_outputs(layer_def(layer.type), layer, std::span(part.in).first(1)).front().shape;
  } catch (const Error&) {
    return {};
  }
  if (shape.rank() != whole.rank() || 2 * shape.elements() > whole.elements()) return {};
  part.outs.front().shape = shape;
  if (residual > 0) part.in.back().shape = shape;
  return part;
}

}  // namespace softneuro
