#include "providers/ort/run/output_shapes.h"

#include <mutex>
#include <utility>

namespace softneuro::ort {

std::shared_ptr<const OutputDims> OutputShapes::find(const Signature& signature) {
  {
    const std::shared_lock lock(mutex_);
    if (const auto known = table_.find(signature); known != table_.end()) return known->second;
    if (before_.find(signature) == before_.end()) return nullptr;
  }
  const std::unique_lock lock(mutex_);
  const auto old = before_.find(signature);
  if (old == before_.end()) return nullptr;
  const auto dims = old->second;
  keep(signature, dims);
  return dims;
}

void OutputShapes::add(const Signature& signature, OutputDims dims) {
  const std::unique_lock lock(mutex_);
  keep(signature, std::make_shared<const OutputDims>(std::move(dims)));
}

void OutputShapes::keep(const Signature& signature, std::shared_ptr<const OutputDims> dims) {
  if (table_.size() >= most) before_ = std::exchange(table_, {});
  table_[signature] = std::move(dims);
}

}  // namespace softneuro::ort
