// What a cost is keyed by: device, threads, layer signature, descriptor and the kernel sources.
#pragma once

#include <optional>
#include <string>

#include "tune/cost_db.h"

namespace softneuro {

// CPU, caches and the best ISA level in effect.
std::string device_fingerprint();

// The database as seen from one device, thread count and build.
class Ledger {
 public:
  Ledger(CostDb& db, int threads);
  std::optional<double> find(const std::string& signature, const std::string& descriptor) const;
  void add(const std::string& signature, const std::string& descriptor, double seconds);

 private:
  CostDb& db_;
  int threads_;
};

}  // namespace softneuro
