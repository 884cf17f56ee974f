// A childnet: a routine that is a small net of other layers, each with a routine of its own.
#pragma once

#include "layers/contract/registry.h"

namespace softneuro {

// One layer of a chain: it reads what the one before it wrote, the first the parent's input, and the last, if it has
// a residual, the parent's.
struct ChildPart {
  std::shared_ptr<const Layer> layer;
  std::vector<TensorDesc> in;
  TensorDesc out;
  RoutineChoice choice;

  Problem problem(int threads) const { return {layer.get(), in, out, threads}; }
};
using Childnet = std::vector<ChildPart>;

// A part's output follows from its layer and inputs.
ChildPart child_part(Layer layer, std::vector<TensorDesc> in, RoutineChoice choice);

// A routine from the childnet that its tuning stands for. The tuner measures the parts, each once however many
// tunings and layers share it, and takes the sum for the routine's time.
class ChildnetRoutine : public Routine {
 public:
  using Routine::Routine;

  // The layer types that parts may be of: their routines' sources are its own, too.
  virtual std::vector<std::string_view> part_types() const = 0;
  std::string source_hash() const final;
  // Takes problems that it accepts and tunings of its own; throws Error for others.
  virtual Childnet childnet(const Problem& problem, const Tuning& tuning) const = 0;

  // The parts' packings, each under its number.
  Packing packing(const Problem& problem, const Tuning& tuning) const final;
  void pack(const Problem& problem, const Tuning& tuning, Packed& to) const final;
  std::unique_ptr<const Prepared> prepare(const Problem& problem, const Tuning& tuning,
                                          std::shared_ptr<const Packed> packed) const final;
};

// Bytes of the blobs between the parts.
size_t childnet_blob_bytes(const Childnet& net);

}  // namespace softneuro
