#include "base/arena.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "base/error.h"

#ifdef __linux__
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <new>
#endif

namespace softneuro {
namespace {

#if defined(__linux__) && !defined(__SANITIZE_ADDRESS__)

constexpr size_t huge_page = size_t{2} << 20;

// Buffers of a huge page and more are mapped, each for itself: the C library's heap would keep what is given back.
void* map(size_t bytes) {
  if (bytes > PTRDIFF_MAX - huge_page) return nullptr;
  const size_t whole = bytes + huge_page;
  void* memory = mmap(nullptr, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  auto* begin = static_cast<std::byte*>(memory);
  const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const size_t before = (huge_page - reinterpret_cast<uintptr_t>(begin) % huge_page) % huge_page;
  const size_t used = (bytes + page - 1) / page * page;
  if (before > 0) munmap(begin, before);
  if (before + used < whole) munmap(begin + before + used, whole - before - used);
  madvise(begin + before, used, MADV_HUGEPAGE);  // advice only: refusal changes nothing but speed
  return begin + before;
}

void unmap(void* data, size_t bytes) {
  const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  munmap(data, (bytes + page - 1) / page * page);
}

// Huge pages for buffers that are smaller than one. A network's packed weights are dozens of these, and each run reads
// them from end to end: on small pages much of that is waiting for page tables, and prefetching ends with every page.
// On an EPYC (Zen 4, guest) MobileNetV3-large took 6 % longer without, on one thread.
class Chunks {
 public:
  static Chunks& global() {
    static auto* chunks = new Chunks;  // never destroyed: buffers of static objects may outlive it
    return *chunks;
  }
  static bool serves(size_t bytes) { return bytes >= least && bytes < huge_page; }

  // Null when memory is short.
  void* take(size_t bytes) {
    const std::lock_guard lock(mutex_);
    for (auto& [start, gaps] : chunks_) {
      if (void* data = cut(start, gaps, bytes)) return data;
    }
    void* memory = map(chunk_bytes);
    if (memory == nullptr) return nullptr;
    Gaps& gaps = chunks_[static_cast<std::byte*>(memory)];
    gaps[0] = chunk_bytes;
    return cut(static_cast<std::byte*>(memory), gaps, bytes);
  }

  // False if the buffer is of no chunk.
  bool give_back(void* data, size_t bytes) {
    const std::lock_guard lock(mutex_);
    auto chunk = chunks_.upper_bound(static_cast<std::byte*>(data));
    if (chunk == chunks_.begin()) return false;
    --chunk;
    if (static_cast<std::byte*>(data) >= chunk->first + chunk_bytes) return false;
    Gaps& gaps = chunk->second;
    auto gap = gaps.emplace(static_cast<std::byte*>(data) - chunk->first, round_up(bytes)).first;
    if (const auto next = std::next(gap); next != gaps.end() && gap->first + gap->second == next->first) {
      gap->second += next->second;
      gaps.erase(next);
    }
    if (gap != gaps.begin()) {
      if (const auto before = std::prev(gap); before->first + before->second == gap->first) {
        before->second += gap->second;
        gaps.erase(gap);
      }
    }
    const auto idle = [](const auto& entry) {
      return !entry.second.empty() && entry.second.begin()->second == chunk_bytes;
    };
    if (!idle(*chunk)) return true;
    // The beginning of one is kept: candidates are packed and dropped by the hundred while a net is tuned.
    if (std::count_if(chunks_.begin(), chunks_.end(), idle) > 1) {
      unmap(chunk->first, chunk_bytes);
      chunks_.erase(chunk);
    } else {
      madvise(chunk->first + kept_bytes, chunk_bytes - kept_bytes, MADV_DONTNEED);
    }
    return true;
  }

 private:
  // Many huge pages, of which only those touched take memory: what is left at the end of a chunk is lost.
  static constexpr size_t chunk_bytes = 16 * huge_page, kept_bytes = 4 * huge_page, least = size_t{16} << 10;
  using Gaps = std::map<size_t, size_t>;  // what is free: offset -> bytes

  Chunks() {
    pthread_atfork([] { global().mutex_.lock(); }, [] { global().mutex_.unlock(); }, [] { global().mutex_.unlock(); });
  }

  static size_t round_up(size_t bytes) {
    return (bytes + AlignedBuffer::alignment - 1) & ~(AlignedBuffer::alignment - 1);
  }

  static void* cut(std::byte* start, Gaps& gaps, size_t bytes) {
    bytes = round_up(bytes);
    const auto gap = std::find_if(gaps.begin(), gaps.end(), [&](const auto& entry) { return entry.second >= bytes; });
    if (gap == gaps.end()) return nullptr;
    const auto [offset, size] = *gap;
    gaps.erase(gap);
    if (size > bytes) gaps[offset + bytes] = size - bytes;
    return start + offset;
  }

  std::mutex mutex_;
  std::map<std::byte*, Gaps> chunks_;
};

void* allocate(size_t bytes) {
  if (Chunks::serves(bytes)) {
    if (void* data = Chunks::global().take(bytes)) return data;
  }
  if (bytes >= huge_page) return map(bytes);
  void* data = nullptr;
  return posix_memalign(&data, AlignedBuffer::alignment, bytes) == 0 ? data : nullptr;
}

void release(void* data, size_t bytes) {
  try {
    if (Chunks::serves(bytes) && Chunks::global().give_back(data, bytes)) return;
  } catch (const std::bad_alloc&) {  // for the note that it is free: rather lost than an end of the program
    return;
  }
  if (bytes >= huge_page) {
    unmap(data, bytes);
  } else {
    std::free(data);
  }
}

#else

void* allocate(size_t bytes) {
  void* data = nullptr;
  if (bytes > PTRDIFF_MAX - AlignedBuffer::alignment) return nullptr;
  return posix_memalign(&data, AlignedBuffer::alignment, bytes) == 0 ? data : nullptr;
}
void release(void* data, size_t) { std::free(data); }

#endif

}  // namespace

AlignedBuffer::AlignedBuffer(size_t bytes) : size_(bytes) {
  if (bytes == 0) return;
  data_ = allocate(bytes);
  if (data_ != nullptr) return;
  throw Error("out of memory: " + std::to_string(bytes) + " bytes could not be allocated", {},
              "use a smaller batch or image, fewer prepared shapes, or free memory elsewhere");
}

AlignedBuffer::~AlignedBuffer() {
  if (data_ != nullptr) release(data_, size_);
}

}  // namespace softneuro
