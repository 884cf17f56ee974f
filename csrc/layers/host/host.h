// host: an op that stays with the host, as a step of a net. Attribute `op` says what it is.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "layers/contract/layer.h"

namespace softneuro {

// A run has no results, and the host is to run the call: what a step of the host has thrown, and where.
class HostStepError : public Error {
 public:
  using Error::Error;
};

// A layer has rejected the values of its inputs: the host says what is wrong with them. The run has been to its end.
class RejectedInput : public HostStepError {
 public:
  using HostStepError::HostStepError;
};

// What a front door calls. Immutable; `run` may be called from several threads at once.
struct HostOp {
  // Row-major memory, dense but for inputs where `strided`, each blob in its host_schema: inputs are only read, each
  // output is written whole. Called on the thread that runs the net while no other of the host's threads works for it.
  // What it throws, the run throws as a HostStepError, but for what allocations throw.
  std::function<void(std::span<const TensorView> in, std::span<const TensorView> outs)> run;
  std::vector<TensorDesc> outs;
  bool strided = false;              // takes reals of two axes or more as parts of larger blobs, by their strides
  std::vector<TensorDesc> ins = {};  // for the reference, which is not told what numbers stand for; empty: reals
};

// The storage in which steps have such values: on a grid or not, reals are floats to them.
Schema host_schema(TensorDesc desc);
// A layer of the type. `op` names the op with all that its results depend on, for signatures.
Layer host_layer(std::string name, std::string op, HostOp host);

}  // namespace softneuro
