// What a cost is keyed by: device, threads, layer signature, descriptor and sources.
#pragma once

#include <optional>
#include <string>

#include "tune/cost_db.h"

namespace softneuro {

// CPU, caches and the ISA levels in effect.
std::string device_fingerprint();

// The process's own database of a directory; empty for the default one, which is looked up anew at each call.
CostDb& shared_cost_db(const std::string& directory = {});

// The database as seen from one device, thread count and build.
class Ledger {
 public:
  Ledger(CostDb& db, int threads);
  std::optional<double> find(const std::string& signature, const std::string& descriptor) const;
  std::optional<CostRecord> find_record(const std::string& signature, const std::string& descriptor) const;
  void add(const std::string& signature, const std::string& descriptor, double seconds);
  // What was not measured and is not to be by whoever has no more than `budget` seconds, either: he would choose again.
  void add_forecast(const std::string& signature, const std::string& descriptor, double seconds, double budget);
  // Whether a record is such a one, as good as measured to whoever has this budget.
  static bool is_forecast(const CostRecord& record) { return record.samples == 0; }
  static bool is_final(const CostRecord& record, double budget);
  // Whether a region beat the host; `region` names everything that this depends on.
  std::optional<VerdictRecord> find_verdict(const std::string& region) const;
  void add_verdict(const std::string& region, const VerdictRecord& verdict);

 private:
  CostKey key(const std::string& signature, const std::string& descriptor) const;

  CostDb& db_;
  int threads_;
};

}  // namespace softneuro
