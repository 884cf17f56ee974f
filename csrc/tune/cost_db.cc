#include "tune/cost_db.h"

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "tune/cost_file.h"
#include "tune/record_text.h"

namespace softneuro {
namespace {

constexpr double longest = 3600;  // seconds that any one routine or region may claim

// "cost" or "verdict" first, so that the two kinds never meet.
std::string key_text(std::string_view kind, const CostKey& key) {
  std::string text(kind);
  text += ' ' + escape_field(key.version) + ' ' + escape_field(key.device) + ' ' + std::to_string(key.threads);
  return text + ' ' + escape_field(key.signature) + ' ' + escape_field(key.descriptor);
}

std::vector<std::string_view> split(std::string_view text) {
  std::vector<std::string_view> parts;
  for (size_t space; (space = text.find(' ')) != std::string_view::npos; text.remove_prefix(space + 1)) {
    parts.push_back(text.substr(0, space));
  }
  parts.push_back(text);
  return parts;
}

bool is_time(double seconds) { return std::isfinite(seconds) && seconds >= 0 && seconds <= longest; }

void check_time(double seconds, const char* what) {
  if (!is_time(seconds))
    throw Error(std::string(what) + " " + exact_number(seconds) + " is not a time", "cost database");
}

std::optional<double> time_field(std::string_view text) {
  const auto value = parse_double(text);
  return value && is_time(*value) ? value : std::nullopt;
}

}  // namespace

struct CostDb::State {
  State(const std::string& directory, size_t max_bytes) : file(directory, max_bytes) {}
  std::mutex mutex;
  CostFile file;
};

CostDb::CostDb(std::string directory, size_t max_bytes)
    : state_(std::make_unique<State>(directory.empty() ? default_directory() : directory, max_bytes)) {}

CostDb::~CostDb() = default;

std::string CostDb::default_directory() {
  auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value == nullptr ? "" : value);
  };
  if (std::string own = variable("SOFTNEURO_CACHE_DIR"); !own.empty()) return own;
  // The XDG specification: relative paths are to be ignored.
  if (std::string xdg = variable("XDG_CACHE_HOME"); xdg.starts_with('/')) return xdg + "/softneuro";
  if (std::string home = variable("HOME"); !home.empty()) return home + "/.cache/softneuro";
  return {};
}

std::optional<CostRecord> CostDb::find(const CostKey& key) {
  const std::lock_guard lock(state_->mutex);
  const auto text = state_->file.find(key_text("cost", key));
  if (!text) return std::nullopt;
  const auto parts = split(*text);
  if (parts.size() != 3) return std::nullopt;
  const auto seconds = time_field(parts[0]), spread = time_field(parts[2]);
  const auto samples = parse_integer(parts[1]);
  if (!seconds || !spread || !samples || *samples < 0 || *samples > INT32_MAX) return std::nullopt;
  return CostRecord{*seconds, static_cast<int>(*samples), *spread};
}

std::optional<VerdictRecord> CostDb::find_verdict(const CostKey& key) {
  const std::lock_guard lock(state_->mutex);
  const auto text = state_->file.find(key_text("verdict", key));
  if (!text) return std::nullopt;
  const auto parts = split(*text);
  if (parts.size() != 5 || (parts[0] != "won" && parts[0] != "lost")) return std::nullopt;
  const auto seconds = time_field(parts[1]), host = time_field(parts[2]), error = parse_double(parts[3]);
  const auto trials = parse_integer(parts[4]);
  if (!seconds || !host || !error || !(*error >= 0)) return std::nullopt;
  if (!trials || *trials < 1 || *trials > INT32_MAX) return std::nullopt;
  return VerdictRecord{parts[0] == "won", *seconds, *host, *error, static_cast<int>(*trials)};
}

void CostDb::add(const CostKey& key, const CostRecord& record) {
  check_time(record.seconds, "cost");
  check_time(record.spread, "spread");
  if (record.samples < 0) throw Error("negative number of samples", "cost database");
  const std::lock_guard lock(state_->mutex);
  state_->file.add({key_text("cost", key), exact_number(record.seconds) + ' ' + std::to_string(record.samples) + ' ' +
                                               exact_number(record.spread)});
}

void CostDb::add_verdict(const CostKey& key, const VerdictRecord& record) {
  check_time(record.seconds, "time");
  check_time(record.host_seconds, "the host's time");
  // Infinity is a verdict too (the host was finite, the region was not); only NaN says nothing.
  if (!(record.error >= 0)) throw Error("error " + exact_number(record.error) + " is no error", "cost database");
  if (record.trials < 1) throw Error("a verdict without a trial", "cost database");
  const std::lock_guard lock(state_->mutex);
  state_->file.add({key_text("verdict", key), std::string(record.won ? "won " : "lost ") +
                                                  exact_number(record.seconds) + ' ' +
                                                  exact_number(record.host_seconds) + ' ' + exact_number(record.error) +
                                                  ' ' + std::to_string(record.trials)});
}

size_t CostDb::size() {
  const std::lock_guard lock(state_->mutex);
  return state_->file.size();
}

std::string CostDb::path() const {
  const std::lock_guard lock(state_->mutex);
  return state_->file.path();
}

void CostDb::compact() {
  const std::lock_guard lock(state_->mutex);
  state_->file.compact();
}

}  // namespace softneuro
