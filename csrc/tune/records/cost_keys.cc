#include "tune/records/cost_keys.h"

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>

#include "base/arch.h"
#include "base/text.h"
#include "tune/search/solution.h"

namespace softneuro {

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

Subject::Subject(const Assignment& plan)
    : descriptor("plan " + content_hash(plan_text(plan))), version(plan_version(plan)) {}

Subject Subject::all_of(std::string_view layer_type) {
  std::string hashes;
  for (const auto& routine : routines(layer_type)) hashes += routine->source_hash() + "\n";
  return {std::string(layer_type), content_hash(hashes).substr(0, 16)};
}

Ledger::Ledger(CostDb& db, int threads) : db_(db), device_(device_fingerprint()), threads_(threads) {}

CostKey Ledger::key(const std::string& signature, const Subject& subject, const std::string& graph) const {
  return {device_, threads_, signature, subject.descriptor, subject.version, graph};
}

CostKey Ledger::region_key(const std::string& region, const std::string& choices) const {
  return {device_, threads_, region, "plan " + choices, {}};
}

std::optional<double> Ledger::find_time(const std::string& signature, const Subject& subject) const {
  const auto record = db_.find<TimeRecord>(key(signature, subject));
  return record ? std::optional(record->seconds) : std::nullopt;
}

void Ledger::add_time(const std::string& signature, const Subject& subject, double seconds) {
  db_.add(key(signature, subject), TimeRecord{.seconds = seconds});
}

std::optional<double> Ledger::find_forecast(const std::string& graph, const std::string& signature,
                                            const Subject& subject, double budget_s) const {
  const auto record = db_.find<ForecastRecord>(key(signature, subject, graph));
  return record && record->budget_s >= budget_s ? std::optional(record->seconds) : std::nullopt;
}

void Ledger::add_forecast(const std::string& graph, const std::string& signature, const Subject& subject,
                          double seconds, double budget_s) {
  db_.add(key(signature, subject, graph), ForecastRecord{std::min(seconds, any_time.most), budget_s});
}

std::optional<double> Ledger::find_error(const std::string& signature, const Subject& subject) const {
  const auto record = db_.find<ErrorRecord>(key(signature, subject));
  return record ? std::optional(record->error) : std::nullopt;
}

void Ledger::add_error(const std::string& signature, const Subject& subject, double error) {
  db_.add(key(signature, subject), ErrorRecord{error});
}

std::optional<int> Ledger::find_sections(const std::string& signature, const Subject& subject) const {
  const auto record = db_.find<SectionsRecord>(key(signature, subject));
  return record ? std::optional(record->count) : std::nullopt;
}

void Ledger::add_sections(const std::string& signature, const Subject& subject, int count) {
  db_.add(key(signature, subject), SectionsRecord{count});
}

bool Ledger::was_too_much(const std::string& signature, const Subject& subject, double budget_s) const {
  const auto record = db_.find<AllowanceRecord>(key(signature, subject));
  return record && record->budget_s >= budget_s;
}

void Ledger::add_too_much(const std::string& signature, const Subject& subject, double budget_s) {
  db_.add(key(signature, subject), AllowanceRecord{budget_s});
}

std::optional<double> Ledger::find_floor(const std::string& signature, const Subject& subject) const {
  const auto record = db_.find<FloorRecord>(key(signature, subject));
  return record ? std::optional(record->zeros) : std::nullopt;
}

void Ledger::add_floor(const std::string& signature, const Subject& subject, double zeros) {
  db_.add(key(signature, subject), FloorRecord{zeros});
}

std::optional<VerdictRecord> Ledger::find_verdict(const std::string& region, const std::string& choices) const {
  return db_.find<VerdictRecord>(region_key(region, choices));
}

void Ledger::add_verdict(const std::string& region, const std::string& choices, const VerdictRecord& verdict) {
  db_.add(region_key(region, choices), verdict);
}

std::optional<double> Ledger::find_host_error(const std::string& region, const std::string& choices) const {
  const auto record = db_.find<ErrorRecord>(region_key(region, choices));
  return record ? std::optional(record->error) : std::nullopt;
}

void Ledger::add_host_error(const std::string& region, const std::string& choices, double error) {
  db_.add(region_key(region, choices), ErrorRecord{error});
}

}  // namespace softneuro
