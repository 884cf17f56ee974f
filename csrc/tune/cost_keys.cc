#include "tune/cost_keys.h"

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>

#include "base/arch.h"
#include "base/version.h"

namespace softneuro {

static constexpr double most_seconds = 3600;  // that the database takes

std::string device_fingerprint() {
  const CacheInfo& cache = caches();
  std::string text = cpu_id();
  for (const size_t size : {cache.l1d, cache.l2, cache.l3}) text += "-" + std::to_string(size >> 10);
  for (const auto* levels : {&available_isas(), &available_extensions()}) {
    for (const Isa isa : *levels) text += "+" + std::string(isa_name(isa));
  }
  return text;
}

CostDb& shared_cost_db(const std::string& directory) {
  static std::mutex mutex;
  // Never destroyed: a door may still record a cost while the process ends.
  static auto* databases = new std::map<std::string, std::unique_ptr<CostDb>>;
  const std::string place = directory.empty() ? CostDb::default_directory() : directory;
  const std::lock_guard lock(mutex);
  auto& db = (*databases)[place];
  if (!db) db = std::make_unique<CostDb>(place);
  return *db;
}

Ledger::Ledger(CostDb& db, int threads) : db_(db), threads_(threads) {}

CostKey Ledger::key(const std::string& signature, const std::string& descriptor) const {
  return {device_fingerprint(), threads_, signature, descriptor, std::string(kernel_hash())};
}

std::optional<double> Ledger::find(const std::string& signature, const std::string& descriptor) const {
  const auto record = db_.find(key(signature, descriptor));
  if (!record) return {};
  return record->seconds;
}

void Ledger::add(const std::string& signature, const std::string& descriptor, double seconds) {
  db_.add(key(signature, descriptor), {seconds, 1, 0});
}

std::optional<CostRecord> Ledger::find_record(const std::string& signature, const std::string& descriptor) const {
  return db_.find(key(signature, descriptor));
}

void Ledger::add_forecast(const std::string& signature, const std::string& descriptor, double seconds, double budget) {
  db_.add(key(signature, descriptor), {std::min(seconds, most_seconds), 0, std::min(budget, most_seconds)});
}

bool Ledger::is_final(const CostRecord& record, double budget) {
  return !is_forecast(record) || record.spread >= std::min(budget, most_seconds);
}

std::optional<VerdictRecord> Ledger::find_verdict(const std::string& region) const {
  return db_.find_verdict(key(region, ""));
}

void Ledger::add_verdict(const std::string& region, const VerdictRecord& verdict) {
  db_.add_verdict(key(region, ""), verdict);
}

}  // namespace softneuro
