#include "tune/measure/excerpt.h"

#include <algorithm>
#include <span>

#include "base/error.h"
#include "layers/contract/registry.h"
#include "tune/plan/carry.h"
#include "tune/search/candidates.h"

namespace softneuro {
namespace {

constexpr double long_seconds = 1e-3;     // by the rules' guess, which most machines beat severalfold
constexpr double large_bytes = 64 << 20;  // more than a guest gets of a server's caches

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

// Counts elements of the images that a layer reads and writes, residuals left out.
double elements(const Problem& problem) {
  return static_cast<double>(problem.in.front().shape.elements()) + static_cast<double>(problem.out().shape.elements());
}

// So that what is read and written, `elements` in all, is still large.
std::optional<Cut> large_cut(const Shape& shape, double elements) {
  const auto cut = cut_of(shape);
  if (!cut) return {};
  const auto parts = static_cast<int64_t>(sizeof(float) * elements / large_bytes);
  // As many rows as an excerpt of it needs.
  const int64_t most = shape[cut->axis] / (cut->axis == 0 ? 8 : 64);
  const int64_t count = std::min(parts, most);
  return count > 1 ? std::optional(Cut{cut->axis, count}) : std::nullopt;
}

bool has_parts(const Problem& problem) {
  const Layer& layer = *problem.layer;
  return layer.host == nullptr && !layer.weights.empty() && problem.outs.size() == 1 &&
         problem.in.size() == (layer.post.residual ? 2 : 1);
}

std::optional<Problem> cut_by(const Problem& problem, const Cut& cut) {
  const Shape& whole = problem.out().shape;
  if (cut.axis >= whole.rank()) return {};
  Problem part = problem;
  part.in.front().shape[cut.axis] /= cut.parts;
  // What a layer's attributes say of sizes may hold for the whole alone.
  Shape shape;
  try {
    shape = infer_outputs(layer_def(problem.layer->type), *problem.layer, std::span(part.in).first(1)).front().shape;
  } catch (const Error&) {
    return {};
  }
  if (shape.rank() != whole.rank() || 2 * shape.elements() > whole.elements()) return {};
  part.outs.front().shape = shape;
  if (part.in.size() > 1) part.in.back().shape = shape;
  return part;
}

}  // namespace

std::optional<Problem> excerpt(const Problem& problem) {
  if (!has_parts(problem) || estimate_seconds(problem, 0) < long_seconds) return {};
  const auto cut = cut_of(problem.in.front().shape);
  return cut ? cut_by(problem, *cut) : std::nullopt;
}

std::optional<Problem> large_part(const Problem& problem) {
  if (!has_parts(problem)) return {};
  const auto cut = large_cut(problem.in.front().shape, elements(problem));
  return cut ? cut_by(problem, *cut) : std::nullopt;
}

std::optional<TensorDesc> large_part(const TensorDesc& desc) {
  const auto cut = large_cut(desc.shape, 2 * static_cast<double>(desc.shape.elements()));
  if (!cut) return {};
  TensorDesc part = desc;
  part.shape[cut->axis] /= cut->parts;
  return part;
}

PartCandidates::PartCandidates(const Problem& whole, const Problem& part, std::span<Candidate* const> candidates)
    : scale_(elements(whole) / elements(part)) {
  for (Candidate* candidate : candidates) {
    const auto choice = fitted(part, candidate->choice);
    if (!choice) continue;
    Candidate& copy = all_.emplace_back(*candidate);
    copy.choice = *choice;
    copy.descriptor = choice->routine->descriptor(choice->tuning);
    whole_.push_back(candidate);
  }
}

}  // namespace softneuro
