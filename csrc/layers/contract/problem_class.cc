#include "layers/contract/problem_class.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/text.h"

namespace softneuro {
namespace {

bool has_several_zero_points(const Quantization& q) {
  return std::any_of(q.zero_points.begin(), q.zero_points.end(), [&](int32_t z) { return z != q.zero_points[0]; });
}

// The same kind of quantization with parameters that say no more: scales that are `number`, and zero points that are
// all zero, all alike, or not.
std::shared_ptr<const Quantization> plain(const Quantization& q, int number) {
  auto made = std::make_shared<Quantization>(q);
  std::fill(made->scales.begin(), made->scales.end(), static_cast<float>(number));
  const int32_t point = q.most != 0 ? q.most : q.least, other = point == q.least ? q.most : q.least;
  const bool several = has_several_zero_points(q), zero = !several && q.zero_points[0] == 0;
  std::fill(made->zero_points.begin(), made->zero_points.end(), zero ? 0 : point);
  if (several) made->zero_points[0] = other;
  return made;
}

// The grids of a problem's blobs by number, as routines may ask which blobs have the same.
class Grids {
 public:
  void replace(std::shared_ptr<const Quantization>& quantization) {
    if (quantization == nullptr) return;
    auto at =
        std::find_if(known_.begin(), known_.end(), [&](const auto& grid) { return *grid.first == *quantization; });
    if (at == known_.end()) {
      known_.emplace_back(quantization, plain(*quantization, static_cast<int>(known_.size()) + 1));
      at = known_.end() - 1;
    }
    quantization = at->second;
  }

 private:
  using Grid = std::shared_ptr<const Quantization>;
  std::vector<std::pair<Grid, Grid>> known_;
};

std::string grid_text(const Quantization& q) { return "#" + std::to_string(static_cast<int>(q.scales[0])); }

std::string blob_text(const TensorDesc& desc) {
  return desc.str() + (desc.quantization == nullptr ? "" : grid_text(*desc.quantization));
}

std::string without_extents(TensorDesc desc) {
  desc.shape = Shape{};
  return desc.str();
}

double size_of(const Shape& shape) { return std::log2(static_cast<double>(std::max<int64_t>(1, shape.elements()))); }

// Nothing for float32 that is at hand, which goes without saying.
std::string storage_text(const ConstantData& value) {
  std::string text = value.dtype() == DType::float32 ? "" : ":" + std::string(dtype_name(value.dtype()));
  if (!value.at_hand()) text += ":computed";
  const auto& quantization = value.desc().quantization;
  return quantization != nullptr && has_several_zero_points(*quantization) ? text + ":zero_points" : text;
}

std::string coarse_text(WeightTraits traits) {
  traits.zeros = std::round(10 * traits.zeros) / 10;
  return traits.str();
}

}  // namespace

PlainProblem::PlainProblem(const Problem& problem, Patterns patterns) : problem_(problem) {
  auto layer = std::make_shared<Layer>(*problem.layer);
  layer->name.clear();
  std::sort(layer->weights.begin(), layer->weights.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  for (auto& [role, value] : layer->weights) {
    TensorDesc desc = value->desc();
    if (desc.quantization != nullptr) desc.quantization = plain(*desc.quantization, 1);
    const WeightTraits traits = patterns == Patterns::found ? value->traits().class_traits() : WeightTraits{};
    value = std::make_shared<const ConstantData>(std::move(desc), value->dtype(), traits, value->at_hand());
  }
  Grids grids;
  for (TensorDesc& desc : problem_.in) grids.replace(desc.quantization);
  for (TensorDesc& desc : problem_.outs) grids.replace(desc.quantization);
  grids.replace(layer->post.quantize);
  grids.replace(layer->post.quantize_first);
  layer_ = std::move(layer);
  problem_.layer = layer_.get();
}

ProblemClass::ProblemClass(const Problem& of, Patterns patterns) : plain_(of, patterns) {
  const Problem& problem = plain_.problem();
  const Layer& layer = *problem.layer;
  dense_ = layer.type + "{" + layer.attrs.str() + "}";
  kind_ = dense_;
  sizes_ = {problem.outs.empty() ? 0 : size_of(problem.out().shape),
            problem.in.empty() ? 0 : size_of(problem.in.front().shape)};
  std::string zeros;
  for (const auto& [role, value] : layer.weights) {
    const std::string storage = storage_text(*value);
    dense_ += " " + role + ":" + value->desc().str() + storage;
    kind_ += " " + role + ":" + without_extents(value->desc()) + storage + coarse_text(value->traits());
    for (int axis = 2; axis < value->shape().rank(); ++axis) kind_ += ":" + std::to_string(value->shape()[axis]);
    if (const std::string own = value->traits().str(); !own.empty()) zeros += " " + role + own;
    sizes_.push_back(size_of(value->shape()));
  }
  dense_ += layer.post.str();
  if (layer.post.quantize_first != nullptr) dense_ += grid_text(*layer.post.quantize_first);
  for (const TensorDesc& desc : problem.in) dense_ += " " + blob_text(desc), kind_ += " " + without_extents(desc);
  const char* before = "->";
  for (const TensorDesc& desc : problem.outs) {
    dense_ += before + blob_text(desc), kind_ += before + without_extents(desc);
    before = " ";
  }
  text_ = dense_ + zeros;
}

}  // namespace softneuro
