#include "tune/records/cost_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <thread>
#include <vector>

#include "base/log.h"
#include "tune/records/cost_line.h"

namespace softneuro {
namespace {

// Others hold the lock for a write, or a compaction: one that keeps it this long has been stopped.
constexpr std::chrono::seconds patience{3};

constexpr size_t most_read = size_t{1} << 20;  // bytes at once
// Bytes for which it is worth to make room ahead, by what a line is likely to take.
constexpr size_t many_bytes = size_t{1} << 16, usual_line = 300;

// A lock file of its own, because the data file is replaced by compaction. Opened each time: a lock belongs to the open
// file, which a forked child would share.
class FileLock {
 public:
  // Not blocking on opening, because a FIFO that someone put there would.
  explicit FileLock(const std::string& path)
      : fd_(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0666)) {
    using namespace std::chrono_literals;
    const auto end = std::chrono::steady_clock::now() + patience;
    while (fd_ >= 0 && flock(fd_, LOCK_EX | LOCK_NB) != 0) {
      const bool busy = errno == EWOULDBLOCK && std::chrono::steady_clock::now() < end;
      if (busy) std::this_thread::sleep_for(1ms);
      if (busy || errno == EINTR) continue;
      const int reason = errno;
      close(fd_);
      fd_ = -1;
      errno = reason;
    }
  }
  ~FileLock() {
    if (fd_ >= 0) close(fd_);  // unlocks
  }
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;
  bool held() const { return fd_ >= 0; }

 private:
  int fd_;
};

bool write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(fd, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    text.remove_prefix(static_cast<size_t>(written));
  }
  return true;
}

}  // namespace

CostFile::CostFile(const std::string& directory, size_t max_bytes) : max_bytes_(max_bytes) {
  if (directory.empty()) {
    forsake("no directory is known (set SOFTNEURO_CACHE_DIR)");
    return;
  }
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  path_ = directory + "/costs.txt";
  lock_path_ = directory + "/costs.lock";
  if (const FileLock lock(lock_path_); !lock.held()) {
    const std::string reason = std::strerror(errno);
    // What others have measured is still of use.
    fd_ = open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat info{};
    if (fd_ >= 0 && fstat(fd_, &info) == 0 && S_ISREG(info.st_mode)) read_tail();
    forsake("cannot write " + lock_path_ + ": " + reason);
    return;
  }
  refresh();
}

CostFile::~CostFile() { close_file(); }

void CostFile::close_file() {
  if (fd_ >= 0) close(fd_);
  fd_ = -1;
}

// From here on only memory is used.
void CostFile::forsake(const std::string& what) {
  log_warning("the cost database is kept in memory only: " + what);
  close_file();
  path_.clear();
}

bool CostFile::open_file() {
  close_file();
  fd_ = open(path_.c_str(), O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0666);
  struct stat info{};
  if (fd_ < 0 || fstat(fd_, &info) != 0) {
    forsake("cannot open " + path_ + ": " + std::strerror(errno));
    return false;
  }
  if (!S_ISREG(info.st_mode)) {
    forsake(path_ + " is not a file");
    return false;
  }
  inode_ = info.st_ino;
  device_ = info.st_dev;
  read_ = 0;
  return true;
}

void CostFile::refresh() {
  if (path_.empty()) return;
  struct stat info{};
  const bool there = stat(path_.c_str(), &info) == 0;
  if (fd_ < 0 || !there || info.st_ino != inode_ || info.st_dev != device_ ||
      static_cast<size_t>(info.st_size) < read_) {
    // What is known stays known; the new file says what is newest.
    if (!open_file()) return;
  } else if (static_cast<size_t>(info.st_size) == read_) {
    return;
  }
  read_tail();
}

void CostFile::read_tail() {
  struct stat info{};
  if (fstat(fd_, &info) != 0) return;
  const size_t left = static_cast<size_t>(info.st_size) - std::min(static_cast<size_t>(info.st_size), read_);
  if (left > many_bytes) entries_.reserve(entries_.size() + left / usual_line);
  std::vector<char> buffer(std::min(left, most_read) + max_cost_line + 1);
  size_t held = 0, at = read_;  // the beginning of a line is held, less where it is too long to be one
  bool too_long = false;
  while (true) {
    const ssize_t count = pread(fd_, buffer.data() + held, buffer.size() - held, static_cast<off_t>(at));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    at += static_cast<size_t>(count);
    std::string_view chunk(buffer.data(), held + static_cast<size_t>(count));
    for (size_t end; (end = chunk.find('\n')) != std::string_view::npos; chunk.remove_prefix(end + 1)) {
      accept(too_long ? "too long" : chunk.substr(0, end));
      too_long = false;
      read_ = at - (chunk.size() - end - 1);
    }
    too_long = too_long || chunk.size() > max_cost_line;
    held = too_long ? 0 : chunk.size();
    std::memmove(buffer.data(), chunk.data(), held);
  }
  if (has_old_ && entries_.empty() && !told_old_) {
    told_old_ = true;
    log_warning(path_ + " is of an earlier version: what it says is measured again");
  }
}

void CostFile::accept(std::string_view text) {
  if (text.empty()) return;  // closes a torn line, see add()
  const CostLine line = parse_cost_line(text);
  has_old_ = has_old_ || line.kind == LineKind::old;
  if (line.kind == LineKind::damaged && !warned_bad_) {
    log_warning("skipping lines of " + path_ + " that are damaged or from another version");
    warned_bad_ = true;
  }
  if (line.kind != LineKind::record) return;
  Entry& entry = entries_[std::string(line.key)];
  entry.value = line.value;
  entry.age = ++clock_;
}

std::optional<std::string> CostFile::find(const std::string& key) {
  refresh();
  const auto it = entries_.find(key);
  return it == entries_.end() ? std::nullopt : std::optional(it->second.value);
}

void CostFile::add(const std::string& key, std::string value) {
  const std::string text = format_cost_line(key, value);
  // Nobody could read it back from the file, so it lives as long as the process.
  const bool too_long = text.size() > max_cost_line;
  entries_[key] = {std::move(value), ++clock_};
  if (path_.empty() || too_long) return;
  const FileLock lock(lock_path_);
  if (!lock.held()) return forsake("cannot lock " + lock_path_ + ": " + std::strerror(errno));
  refresh();  // under the lock: the file that is appended to is the one at the path
  if (path_.empty()) return;
  // Left by a process that died in its write: a newline makes it a bad line of its own instead of ruining ours.
  struct stat info{};
  const bool torn = fstat(fd_, &info) == 0 && static_cast<size_t>(info.st_size) != read_;
  if (!write_all(fd_, (torn ? "\n" : "") + text)) {
    return forsake("cannot write " + path_ + ": " + std::strerror(errno));
  }
  read_tail();
  if (read_ > max_bytes_) rewrite();
}

void CostFile::compact() {
  if (path_.empty()) return;
  const FileLock lock(lock_path_);
  if (!lock.held()) return forsake("cannot lock " + lock_path_ + ": " + std::strerror(errno));
  refresh();
  if (!path_.empty()) rewrite();
}

// Under the lock.
void CostFile::rewrite() {
  std::vector<std::string> lines;
  for (const auto* entry : order()) lines.push_back(format_cost_line(entry->first, entry->second.value));
  // Newest first until it is full; not to the brim, or the next line would start another round.
  size_t kept = 0, first = lines.size();
  while (first > 0 && kept + lines[first - 1].size() <= max_bytes_ - max_bytes_ / 4) {
    kept += lines[--first].size();
  }
  std::string text;
  text.reserve(kept);
  for (size_t i = first; i < lines.size(); ++i) {
    if (lines[i].size() <= max_cost_line) text += lines[i];
  }
  const std::string fresh = path_ + "." + std::to_string(getpid()) + ".tmp";
  const int fd = open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  const bool written = fd >= 0 && write_all(fd, text) && fsync(fd) == 0;
  if (fd >= 0) close(fd);
  if (!written || rename(fresh.c_str(), path_.c_str()) != 0) {
    const std::string reason = std::strerror(errno);
    unlink(fresh.c_str());
    return forsake("cannot rewrite " + path_ + ": " + reason);
  }
  entries_.clear();
  if (open_file()) read_tail();
}

size_t CostFile::size() {
  refresh();
  return entries_.size();
}

std::vector<const std::pair<const std::string, CostFile::Entry>*> CostFile::order() const {
  std::vector<const std::pair<const std::string, Entry>*> list;
  for (const auto& entry : entries_) list.push_back(&entry);
  std::sort(list.begin(), list.end(), [](const auto* a, const auto* b) { return a->second.age < b->second.age; });
  return list;
}

std::vector<std::pair<std::string, std::string>> CostFile::by_age() {
  refresh();
  std::vector<std::pair<std::string, std::string>> list;
  for (const auto* entry : order()) list.emplace_back(entry->first, entry->second.value);
  return list;
}

}  // namespace softneuro
