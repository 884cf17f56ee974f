// Torch's part of the contract on weights (csrc/runtime/weight_set.h): `epoch_of` for the tensors that they are.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "runtime/region.h"
#include "torch_backend/native/native.h"
#include "torch_backend/native/tensor_watch.h"

namespace softneuro::native {

// One model's weights for a region, as long as all of them live and stay in their memory. Keeps none alive. All of it
// is called with the interpreter's lock.
class TensorSet : public std::enable_shared_from_this<TensorSet> {
 public:
  // What Python knows of torch, as functions of a list of tensors. Where torch has what is compared, None where it is
  // not to be read; and lists of their version counters and addresses.
  struct Torch {
    py::object fields, counters;
  };

  // `region`, which may be null, finds the set by its addresses, and forgets it with the nets when it ends.
  static std::shared_ptr<TensorSet> make(const std::vector<py::object>& tensors, Torch torch,
                                         std::shared_ptr<Region> region);

  ~TensorSet() { end(); }
  TensorSet(const TensorSet&) = delete;
  TensorSet& operator=(const TensorSet&) = delete;

  // Whether it is of these, all alive.
  bool are(const py::sequence& tensors) const;
  // Nothing once it has ended. Throws what torch raises for tensors without memory.
  std::optional<WeightSet> epoch_of();
  void end();

  WatchedWeights& bytes() const { return *bytes_; }
  std::shared_ptr<PaidRuns> learn(std::vector<WatchedWeights::Piece> pieces, bool slices) const;
  bool ended() const { return ended_; }

 private:
  TensorSet(Torch torch, std::shared_ptr<Region> region) : torch_(std::move(torch)), region_(std::move(region)) {}
  void look_at(const std::vector<py::object>& tensors);

  const Torch torch_;
  const std::shared_ptr<Region> region_;
  const std::shared_ptr<WatchedWeights> bytes_ = std::make_shared<WatchedWeights>();
  std::vector<PyObject*> tensors_;
  std::vector<py::object> references_;  // weak ones
  bool ended_ = false;
  std::optional<TensorWatch> watch_;  // a short cut past the counters
  py::object versions_, addresses_;
};

}  // namespace softneuro::native
