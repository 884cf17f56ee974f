// Measured costs and verdicts, kept between runs in an append-only text file that can be diffed and concatenated.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

namespace softneuro {

// What a cost is valid for. Any characters are kept.
struct CostKey {
  std::string device;  // CPU identity, ISA levels in effect, caches
  int threads = 1;
  std::string signature;   // of the layer with its shapes
  std::string descriptor;  // of the routine, params included
  std::string version;     // of the library's kernels
};

struct CostRecord {
  double seconds = 0;
  int samples = 0;    // 0: a forecast, made with `spread` seconds for measuring
  double spread = 0;  // seconds
};

// Whether a region beat the host. `signature` of its key is the region's, `descriptor` is empty or names the host mode.
struct VerdictRecord {
  bool won = false;
  double seconds = 0, host_seconds = 0;
  double error = 0;  // relative L2 against the host
  int trials = 1;    // comparisons that this sums up: a close one is repeated in a later process
};

// Thread-safe, and safe with any number of processes on one directory: a record is one line written at once under a
// lock, with a checksum. Lines that are torn, foreign, too long or do not add up are skipped with one warning. An
// unusable directory costs one warning, and everything stays in memory.
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

  // The newest record. Picks up what other processes have added, at the price of one stat() if nothing.
  std::optional<CostRecord> find(const CostKey& key);
  std::optional<VerdictRecord> find_verdict(const CostKey& key);
  // Throws Error for a number that is no cost: not finite, negative, or over an hour.
  void add(const CostKey& key, const CostRecord& record);
  void add_verdict(const CostKey& key, const VerdictRecord& record);

  size_t size();             // records known
  std::string path() const;  // of the file, empty while only memory is used
  // Rewrites the file with the newest record of each key, oldest dropped to stay within three quarters of the limit.
  // Called by add() when the file outgrows the limit.
  void compact();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace softneuro
