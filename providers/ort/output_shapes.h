// What shapes a region's outputs have, before the host has run it: then it can write them where the session wants them.
#pragma once

#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/fork_mutex.h"
#include "providers/ort/shape_program.h"
#include "runtime/net_cache.h"

namespace softneuro::ort {

// By rules, or of signatures that the host has run. Thread-safe.
class OutputShapes {
 public:
  explicit OutputShapes(const OpGraph& ops) : program_(ops) {}
  // Null if they are not known.
  std::shared_ptr<const OutputDims> find(const Signature& signature, std::span<const RunInput> inputs);
  void add(const Signature& signature, OutputDims dims);

 private:
  static constexpr size_t most = 2048;  // in either
  using Table = std::unordered_map<Signature, std::shared_ptr<const OutputDims>, SignatureHash, SignatureEqual>;

  void keep(const Signature& signature, std::shared_ptr<const OutputDims> dims);

  const ShapeProgram program_;
  ForkMutex mutex_;
  Table table_, before_;  // once a table is full it is the one before, and the one before that is forgotten
};

}  // namespace softneuro::ort
