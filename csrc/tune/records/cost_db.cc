#include "tune/records/cost_db.h"

#include <cstdlib>
#include <mutex>
#include <utility>

#include "tune/records/cost_file.h"
#include "tune/records/cost_line.h"

namespace softneuro {

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

std::optional<std::string> CostDb::find_text(std::string_view kind, const CostKey& key) {
  const std::lock_guard lock(state_->mutex);
  return state_->file.find(cost_key_text(kind, key));
}

void CostDb::add_text(std::string_view kind, const CostKey& key, std::string text) {
  const std::lock_guard lock(state_->mutex);
  state_->file.add(cost_key_text(kind, key), std::move(text));
}

std::vector<CostDb::Entry> CostDb::entries() {
  const std::lock_guard lock(state_->mutex);
  std::vector<Entry> list;
  for (const auto& [text, value] : state_->file.by_age()) {
    if (auto parts = parse_cost_key(text)) list.push_back({std::move(parts->kind), std::move(parts->key), value});
  }
  return list;
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
