#include "tune/excerpt.h"

#include <algorithm>
#include <span>

#include "base/error.h"
#include "layers/registry.h"
#include "tune/candidates.h"

namespace softneuro {
namespace {

constexpr int64_t parts = 8;
constexpr double long_seconds = 1e-3;  // by the rules' guess, which most machines beat severalfold

bool begins_with(const TensorDesc& desc, int64_t size) { return desc.shape.rank() > 1 && desc.shape[0] == size; }

TensorDesc cut(TensorDesc desc, int64_t size) {
  desc.shape[0] = size;
  return desc;
}

}  // namespace

std::optional<Problem> excerpt(const Problem& problem) {
  const Layer& layer = *problem.layer;
  if (layer.host != nullptr || layer.weights.empty() || problem.in.empty()) return {};
  const int64_t size = problem.in.front().shape.rank() > 1 ? problem.in.front().shape[0] : 0;
  if (size < parts || estimate_seconds(problem, 0) < long_seconds) return {};
  const auto whole = [&](const TensorDesc& desc) { return begins_with(desc, size); };
  if (!std::all_of(problem.in.begin(), problem.in.end(), whole)) return {};
  if (!std::all_of(problem.outs.begin(), problem.outs.end(), whole)) return {};
  Problem part = problem;
  for (TensorDesc& desc : part.in) desc = cut(desc, size / parts);
  for (TensorDesc& desc : part.outs) desc = cut(desc, size / parts);
  // What a layer's attributes say of sizes may hold for the whole alone.
  const size_t residual = layer.post.residual ? 1 : 0;
  try {
    const OutputDescs inferred =
        infer_outputs(layer_def(layer.type), layer, std::span(part.in).first(part.in.size() - residual));
    const bool same = std::equal(inferred.begin(), inferred.end(), part.outs.begin(), part.outs.end(),
                                 [](const TensorDesc& a, const TensorDesc& b) { return a.shape == b.shape; });
    if (!same) return {};
  } catch (const Error&) {
    return {};
  }
  return part;
}

}  // namespace softneuro
