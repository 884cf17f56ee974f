// What shapes a region's outputs had when the host ran these sizes: next time it writes them where the session wants
// them.
#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "base/fork_mutex.h"
#include "runtime/net_cache.h"

namespace softneuro::ort {

// By output.
using OutputDims = std::vector<std::vector<int64_t>>;

// Thread-safe. Forgets by age.
class OutputShapes {
 public:
  // Null if they are not known.
  std::shared_ptr<const OutputDims> find(const Signature& signature);
  void add(const Signature& signature, OutputDims dims);

 private:
  static constexpr size_t most = 2048;  // in either
  using Table = std::unordered_map<Signature, std::shared_ptr<const OutputDims>, SignatureHash, SignatureEqual>;

  void keep(const Signature& signature, std::shared_ptr<const OutputDims> dims);

  ForkMutex mutex_;
  Table table_, before_;  // once a table is full it is the one before, and the one before that is forgotten
};

}  // namespace softneuro::ort
