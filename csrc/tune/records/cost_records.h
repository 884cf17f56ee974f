// What the cost database holds: kinds of records, each a struct of named fields with their ranges (record_fields.h). A
// new kind is a struct and an entry of CostRecords.
#pragma once

#include <limits>
#include <string_view>
#include <tuple>

#include "tune/records/record_fields.h"

namespace softneuro {

inline constexpr FieldRange<double> any_time{0, 3600};  // seconds that one routine, net or region may claim
inline constexpr FieldRange<double> any_budget{0, std::numeric_limits<double>::infinity()};  // seconds
inline constexpr FieldRange<double> any_error{0, std::numeric_limits<double>::infinity()};   // relative L2
inline constexpr FieldRange<double> any_share{0, 1};
inline constexpr FieldRange<int> any_count{1, std::numeric_limits<int>::max()};

// What was measured.
struct TimeRecord {
  static constexpr std::string_view kind = "time";
  double seconds = 0;
  int samples = 1;
  double spread = 0;  // seconds
  static void fields(auto& self, auto&& field) {
    field("seconds", self.seconds, any_time);
    field("samples", self.samples, any_count);
    field("spread", self.spread, any_time);
  }
};

// What was not measured, in a tuning that had so much time. Its key names the graph that was tuned.
struct ForecastRecord {
  static constexpr std::string_view kind = "forecast";
  double seconds = 0;
  double budget_s = 0;
  static void fields(auto& self, auto&& field) {
    field("seconds", self.seconds, any_time);
    field("budget_s", self.budget_s, any_budget);
  }
};

// How far a plan's outputs are from those of exact routines, or a region's from the host's, on one set of weights.
struct ErrorRecord {
  static constexpr std::string_view kind = "error";
  double error = 0;
  static void fields(auto& self, auto&& field) { field("error", self.error, any_error); }
};

// In how many sections errors were looked for.
struct SectionsRecord {
  static constexpr std::string_view kind = "sections";
  int count = 1;
  static void fields(auto& self, auto&& field) { field("count", self.count, any_count); }
};

// What there was no time for, with so much of it.
struct AllowanceRecord {
  static constexpr std::string_view kind = "allowance";
  double budget_s = 0;
  static void fields(auto& self, auto&& field) { field("budget_s", self.budget_s, any_budget); }
};

// What a region takes by a plan, and by the host. Whether it errs too much is another record, as it hangs on weights.
struct VerdictRecord {
  static constexpr std::string_view kind = "verdict";
  double seconds = 0, host_seconds = 0;
  int trials = 1;  // comparisons that this sums up: a close one is repeated in a later process
  static void fields(auto& self, auto&& field) {
    field("seconds", self.seconds, any_time);
    field("host_seconds", self.host_seconds, any_time);
    field("trials", self.trials, any_count);
  }
};

// The share of zeros below which routines that leave zeros out do not win.
struct FloorRecord {
  static constexpr std::string_view kind = "floor";
  double zeros = 0;
  static void fields(auto& self, auto&& field) { field("zeros", self.zeros, any_share); }
};

// All kinds.
using CostRecords =
    std::tuple<TimeRecord, ForecastRecord, ErrorRecord, SectionsRecord, AllowanceRecord, VerdictRecord, FloorRecord>;

// Calls fn with a record of that kind, all of it defaults; false if there is no such kind.
template <typename Fn>
bool with_record_kind(std::string_view kind, Fn&& fn) {
  const auto call = [&]<typename... Record>(std::tuple<Record...>*) {
    return ((kind == Record::kind && (fn(Record{}), true)) || ...);
  };
  return call(static_cast<CostRecords*>(nullptr));
}

}  // namespace softneuro
