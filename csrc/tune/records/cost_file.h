// The database's file: a map from key text to value text that several processes append to.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace softneuro {

// Not thread-safe: its owner locks.
class CostFile {
 public:
  CostFile(const std::string& directory, size_t max_bytes);
  ~CostFile();
  CostFile(const CostFile&) = delete;
  CostFile& operator=(const CostFile&) = delete;

  std::optional<std::string> find(const std::string& key);
  void add(const std::string& key, std::string value);
  void compact();
  size_t size();
  // Keys and values, the oldest first.
  std::vector<std::pair<std::string, std::string>> by_age();
  const std::string& path() const { return path_; }

 private:
  struct Entry {
    std::string value;
    uint64_t age;  // later is larger
  };

  bool open_file();
  void close_file();
  // Reads what has been added since; starts over if the file was replaced or cut.
  void refresh();
  void read_tail();
  void accept(std::string_view text);
  std::vector<const std::pair<const std::string, Entry>*> order() const;
  void rewrite();
  void forsake(const std::string& what);

  std::string path_, lock_path_;
  size_t max_bytes_;
  int fd_ = -1;
  ino_t inode_ = 0;
  dev_t device_ = 0;
  size_t read_ = 0;  // bytes understood so far, always whole lines
  bool has_old_ = false, told_old_ = false, warned_bad_ = false;
  uint64_t clock_ = 0;
  std::unordered_map<std::string, Entry> entries_;
};

}  // namespace softneuro
