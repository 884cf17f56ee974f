// What tuning has learned, kept between runs in an append-only text file that can be diffed and concatenated.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tune/records/cost_records.h"

namespace softneuro {

// What a record is valid for. Any characters are kept.
struct CostKey {
  std::string device;  // CPU identity, ISA levels in effect, caches
  int threads = 1;
  std::string signature;   // of the layer with its shapes, or of a graph
  std::string descriptor;  // of the routine, params included, or of a plan
  std::string version;     // of the sources that these are made of
  std::string graph = {};  // that it holds in; empty for all
};

// Thread-safe, and safe with any number of processes on one directory: a record is one line written at once under a
// lock, with a checksum. Records of different kinds never meet. Lines that are torn, foreign, too long or do not add up
// are skipped with one warning; those of kinds that a later version may have are kept as they are. An unusable
// directory costs one warning, and everything stays in memory.
class CostDb {
 public:
  static constexpr size_t default_max_bytes = size_t{64} << 20;

  // An empty directory means the default one.
  explicit CostDb(std::string directory = {}, size_t max_bytes = default_max_bytes);
  ~CostDb();
  CostDb(const CostDb&) = delete;
  CostDb& operator=(const CostDb&) = delete;

  // $SOFTNEURO_CACHE_DIR, $XDG_CACHE_HOME/softneuro or ~/.cache/softneuro; empty if none of these is set.
  static std::string default_directory();

  // The newest record of that kind. Picks up what other processes have added, at the price of one stat() if nothing.
  template <typename Record>
  std::optional<Record> find(const CostKey& key) {
    const auto text = find_text(Record::kind, key);
    return text ? parse_record<Record>(*text) : std::nullopt;
  }
  // Throws Error if a field is not in its range.
  template <typename Record>
  void add(const CostKey& key, const Record& record) {
    check_record(record);
    add_text(Record::kind, key, format_record(record));
  }

  struct Entry {
    std::string kind;
    CostKey key;
    std::string record;  // for parse_record()
  };
  // The newest record of each kind and key, the oldest first, less the kinds that this version does not know.
  std::vector<Entry> entries();

  size_t size();             // records known
  std::string path() const;  // of the file, empty while only memory is used
  // Rewrites the file with the newest record of each key, oldest dropped to stay within three quarters of the limit.
  // Called by add() when the file outgrows the limit.
  void compact();

 private:
  std::optional<std::string> find_text(std::string_view kind, const CostKey& key);
  void add_text(std::string_view kind, const CostKey& key, std::string text);

  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace softneuro
