#include "tune/records/text_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"

namespace softneuro {
namespace {

[[noreturn]] void fail(const std::string& what, const std::string& path) {
  throw Error(what + ": " + std::strerror(errno), path);
}

// A descriptor that closes itself.
class File {
 public:
  File(const std::string& path, int flags) : fd_(open(path.c_str(), flags | O_CLOEXEC | O_NONBLOCK, 0666)) {}
  ~File() {
    if (fd_ >= 0) close(fd_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

}  // namespace

std::string read_text_file(const std::string& path, const std::string& what) {
  const File file(path, O_RDONLY);
  struct stat info{};
  if (file.get() < 0 || fstat(file.get(), &info) != 0) fail("cannot read " + what, path);
  if (!S_ISREG(info.st_mode)) throw Error("is not a file", path);
  std::string text;
  char buffer[1 << 16];
  while (true) {
    const ssize_t count = read(file.get(), buffer, sizeof buffer);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail("cannot read " + what, path);
    if (count == 0) return text;
    text.append(buffer, static_cast<size_t>(count));
    if (text.size() > max_text_file) throw Error("is too large for " + what, path);
  }
}

void change_text_file(const std::string& path, const std::string& what,
                      const std::function<std::string(const std::optional<std::string>& old)>& change) {
  const std::string lock_path = path + ".lock";
  const File lock(lock_path, O_RDWR | O_CREAT);
  if (lock.get() < 0) fail("cannot save " + what, path);
  while (flock(lock.get(), LOCK_EX) != 0) {
    if (errno != EINTR) fail("cannot lock " + lock_path, path);
  }
  std::optional<std::string> old;
  struct stat info{};
  if (stat(path.c_str(), &info) == 0) old = read_text_file(path, what);
  const std::string text = change(old);
  if (text.size() > max_text_file) throw Error("would grow beyond what can be loaded", path);
  const std::string fresh = path + "." + std::to_string(getpid()) + ".tmp";
  bool written = false;
  {
    const File file(fresh, O_WRONLY | O_CREAT | O_TRUNC);
    size_t done = 0;
    while (file.get() >= 0 && done < text.size()) {
      const ssize_t count = write(file.get(), text.data() + done, text.size() - done);
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) break;
      done += static_cast<size_t>(count);
    }
    written = file.get() >= 0 && done == text.size() && fsync(file.get()) == 0;
  }
  if (!written || rename(fresh.c_str(), path.c_str()) != 0) {
    const int reason = errno;
    unlink(fresh.c_str());
    errno = reason;
    fail("cannot save " + what, path);
  }
}

}  // namespace softneuro
