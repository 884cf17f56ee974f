#include "base/arena.h"

#include <cstdint>
#include <cstdlib>
#include <string>

#include "base/error.h"

#ifdef __linux__
#include <sys/mman.h>
#endif

namespace softneuro {
namespace {
constexpr size_t huge_page = size_t{2} << 20;
}

AlignedBuffer::AlignedBuffer(size_t bytes) : size_(bytes) {
  if (bytes == 0) return;
  const size_t align = bytes >= huge_page ? huge_page : alignment;
  if (bytes > PTRDIFF_MAX - align || posix_memalign(&data_, align, bytes) != 0) {
    data_ = nullptr;
    throw Error("out of memory: " + std::to_string(bytes) + " bytes could not be allocated", {},
                "use a smaller batch or image, fewer prepared shapes, or free memory elsewhere");
  }
#ifdef __linux__
  if (bytes >= huge_page) madvise(data_, bytes, MADV_HUGEPAGE);  // advice only: refusal changes nothing but speed
#endif
}

AlignedBuffer::~AlignedBuffer() { std::free(data_); }

}  // namespace softneuro
