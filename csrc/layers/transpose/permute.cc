#include "layers/transpose/permute.h"

#include "base/lines.h"
#include "kernels/transpose2d/bytes.h"
#include "layers/shared/moving.h"

namespace softneuro {

Permutation::Permutation(std::span<const int64_t> dims, std::span<const int> perm, Isa isa, int threads)
    : kernel_(transpose2d_kernel(isa)), threads_(threads) {
  // Dimensions in the output's order; those of one element do not matter, and neighbours that stay neighbours are one
  // (unless a stride that is only known when run comes between).
  const size_t rank = dims.size();
  for (size_t i = 0; i < rank; ++i) {
    const auto from = static_cast<size_t>(perm[i]);
    Dim dim{dims[from], 1, 1, from == 0, i == 0};
    for (size_t j = from + 1; j < rank; ++j) dim.src_stride *= dims[j];
    for (size_t j = i + 1; j < rank; ++j) dim.dst_stride *= dims[static_cast<size_t>(perm[j])];
    elements_ *= dim.size;
    if (dim.size == 1) continue;
    if (!outer_.empty()) {
      Dim& last = outer_.back();
      if (last.src_stride == dim.size * dim.src_stride && !last.src_batch && !last.dst_batch) {
        dim.size *= last.size;
        last = dim;
        continue;
      }
    }
    outer_.push_back(dim);
  }
  if (elements_ == 0 || outer_.empty()) return;

  const auto take = [&](size_t i) {
    const Dim dim = outer_[i];
    outer_.erase(outer_.begin() + static_cast<std::ptrdiff_t>(i));
    return dim;
  };
  size_t innermost = 0;  // of the input
  for (size_t i = 0; i < outer_.size(); ++i) {
    if (outer_[i].src_stride < outer_[innermost].src_stride) innermost = i;
  }
  const bool contiguous = !outer_.back().dst_batch && !outer_[innermost].src_batch;
  if (contiguous && innermost + 1 != outer_.size()) {
    inner_ = Inner::transpose;
    row_ = take(outer_.size() - 1);
    col_ = take(innermost);
    return;
  }
  if (contiguous) run_ = take(innermost).size;
  if (!outer_.empty()) row_ = take(outer_.size() - 1);
}

void Permutation::run(const TensorView& src, const TensorView& dst, const ParallelFor& parallel_for) const {
  if (elements_ == 0) return;
  const auto src_stride = [&](const Dim& dim) { return dim.src_batch ? src.strides[0] : dim.src_stride; };
  const auto dst_stride = [&](const Dim& dim) { return dim.dst_batch ? dst.strides[0] : dim.dst_stride; };
  const auto bytes = static_cast<int64_t>(dtype_bytes(dst.schema.dtype, 1));

  // One item is some 4096 elements of the innermost work: little enough to share out evenly, and whole cache lines.
  const bool swaps = inner_ == Inner::transpose;
  const int64_t length = swaps ? col_.size : row_.size, breadth = swaps ? row_.size : run_;
  const int64_t chunk = whole_lines(4096 / std::min<int64_t>(breadth, 4096));
  const int64_t chunks = (length + chunk - 1) / chunk, items = elements_ / (length * breadth) * chunks;
  const int64_t tasks = std::min(items, task_count(elements_, threads_));
  parallel_for(tasks, [&](int64_t task) {
    const Range part = split_range(items, tasks, task);
    for (int64_t item = part.begin; item < part.end; ++item) {
      int64_t position = item / chunks, from = 0, to = 0;
      for (auto dim = outer_.rbegin(); dim != outer_.rend(); ++dim) {
        const int64_t index = position % dim->size;
        position /= dim->size;
        from += index * src_stride(*dim);
        to += index * dst_stride(*dim);
      }
      const int64_t begin = item % chunks * chunk, count = std::min(chunk, length - begin);
      if (!swaps) {
        copy_runs(static_cast<const std::byte*>(src.at(from + begin * src_stride(row_))), src_stride(row_) * bytes,
                  static_cast<std::byte*>(dst.at(to + begin * dst_stride(row_))), dst_stride(row_) * bytes, count,
                  run_ * bytes);
      } else if (bytes == 1) {
        transpose_bytes2d(static_cast<const uint8_t*>(src.at(from + begin)), src_stride(row_),
                          static_cast<uint8_t*>(dst.at(to + begin * dst_stride(col_))), dst_stride(col_), row_.size,
                          count);
      } else {
        kernel_({src.f32() + from + begin, src_stride(row_), dst.f32() + to + begin * dst_stride(col_),
                 dst_stride(col_), row_.size, count, row_.size});
      }
    }
  });
}

}  // namespace softneuro
