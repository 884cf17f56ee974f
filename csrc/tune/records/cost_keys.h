// What records are keyed by: device, threads, what it is about, and the sources of whatever computes it.
#pragma once

#include <optional>
#include <string>

#include "net/net.h"
#include "tune/records/cost_db.h"
#include "tune/search/candidates.h"

namespace softneuro {

// CPU, caches and the ISA levels in effect.
std::string device_fingerprint();

// The process's own database of a directory; empty for the default one, which is looked up anew at each call.
CostDb& shared_cost_db(const std::string& directory = {});

// Who computes what a record tells about, with the sources that this is made of: an edit of one of them makes another.
struct Subject {
  Subject(const Candidate& candidate)
      : descriptor(candidate.descriptor), version(candidate.choice.routine->source_hash()) {}
  Subject(const Routine& routine) : descriptor(routine.descriptor()), version(routine.source_hash()) {}
  Subject(const Assignment& plan);
  // All routines of a layer type.
  static Subject all_of(std::string_view layer_type);
  // A part of it, or one aspect.
  Subject part(const std::string& name) const { return {descriptor + " " + name, version}; }

  std::string descriptor, version;

 private:
  Subject(std::string what, std::string sources) : descriptor(std::move(what)), version(std::move(sources)) {}
};

// The database as seen from one device, thread count and build. `signature` says what is computed.
class Ledger {
 public:
  Ledger(CostDb& db, int threads);

  // Seconds that were measured.
  std::optional<double> find_time(const std::string& signature, const Subject& subject) const;
  void add_time(const std::string& signature, const Subject& subject, double seconds);

  // Seconds that were forecast in the tuning of a graph, given its structural hash, which had at least this much time.
  // Whoever has no more is not to measure it, either: he would choose again. Another graph makes forecasts of its own.
  std::optional<double> find_forecast(const std::string& graph, const std::string& signature, const Subject& subject,
                                      double budget_s) const;
  void add_forecast(const std::string& graph, const std::string& signature, const Subject& subject, double seconds,
                    double budget_s);

  // The error is that of a plan's outputs.
  std::optional<double> find_error(const std::string& signature, const Subject& subject) const;
  void add_error(const std::string& signature, const Subject& subject, double error);

  std::optional<int> find_sections(const std::string& signature, const Subject& subject) const;
  void add_sections(const std::string& signature, const Subject& subject, int count);

  // Whether there was no time for something with as much of it as this, or more.
  bool was_too_much(const std::string& signature, const Subject& subject, double budget_s) const;
  void add_too_much(const std::string& signature, const Subject& subject, double budget_s);

  std::optional<double> find_floor(const std::string& signature, const Subject& subject) const;
  void add_floor(const std::string& signature, const Subject& subject, double zeros);

  // A region's times have its plan's choices as key, which name the sources, and `region`, which has all else.
  std::optional<VerdictRecord> find_verdict(const std::string& region, const std::string& choices) const;
  void add_verdict(const std::string& region, const std::string& choices, const VerdictRecord& verdict);
  // Against the host; `region` names the weights, too.
  std::optional<double> find_host_error(const std::string& region, const std::string& choices) const;
  void add_host_error(const std::string& region, const std::string& choices, double error);

 private:
  CostKey key(const std::string& signature, const Subject& subject, const std::string& graph = {}) const;
  CostKey region_key(const std::string& region, const std::string& choices) const;

  CostDb& db_;
  std::string device_;
  int threads_;
};

}  // namespace softneuro
