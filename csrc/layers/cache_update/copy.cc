#include <algorithm>
#include <cstring>

#include "layers/cache_update/cache_update.h"
#include "layers/shared/moving.h"

namespace softneuro {
namespace {

// Rows of one cache of the batch. A host may give the cache's memory for the output: what stays is then not copied.
class Rows {
 public:
  Rows(const CacheUpdateParams& p, size_t bytes_of_row, std::byte* to)
      : p_(p), bytes_(static_cast<int64_t>(bytes_of_row)), to_(to) {}

  void copy(int64_t row, const std::byte* from, int64_t count) const {
    std::byte* const to = to_ + row * bytes_;
    if (count > 0 && to != from) std::memcpy(to, from, static_cast<size_t>(count * bytes_));
  }
  void clear(int64_t row, int64_t end) const {
    if (end > row) std::memset(to_ + row * bytes_, 0, static_cast<size_t>((end - row) * bytes_));
  }
  // This copies rows [row, end) of the cache, and writes zeros beyond its end.
  void keep(const std::byte* cache, int64_t row, int64_t end) const {
    const int64_t held = std::clamp(p_.held, row, std::max(row, end));
    copy(row, cache + row * bytes_, held - row);
    clear(held, end);
  }
  void update(const std::byte* cache, const std::byte* added, int64_t start) const {
    const int64_t begin = p_.circular ? start % std::max<int64_t>(p_.size, 1) : start;
    const int64_t end = begin + p_.added, wrapped = std::max<int64_t>(end - p_.size, 0);
    keep(cache, wrapped, begin);
    if (p_.clear) {
      clear(end, p_.size);
    } else {
      keep(cache, end, p_.size);
    }
    copy(begin, added, p_.added - wrapped);
    copy(0, added + (p_.added - wrapped) * bytes_, wrapped);
  }

 private:
  const CacheUpdateParams& p_;
  int64_t bytes_;
  std::byte* to_;
};

class CacheUpdateCopy final : public Routine {
 public:
  explicit CacheUpdateCopy(DType dtype)
      : Routine([&] {
          RoutineInfo info = moving_info("cache_update", "copy", f32_nchw.with(dtype));
          info.others = {f32_nchw.with(dtype), f32_nchw.with(DType::int64)};
          return info;
        }()) {}

  Refusal check(const Problem& problem) const override { return refuse_post_ops(problem); }
  std::unique_ptr<const Prepared> prepare(const Problem& problem, const Tuning&,
                                          std::shared_ptr<const Packed>) const override {
    return prepared_call([p = cache_update_params(*problem.layer, problem.in[0].shape, problem.in[1].shape),
                          threads = problem.threads](const RunArgs& args) { run(p, threads, args); });
  }

 private:
  static void run(const CacheUpdateParams& p, int threads, const RunArgs& args) {
    const TensorView &cache = args.in[0], &added = args.in[1], &starts = args.in[2], &out = args.out;
    const int64_t items = p.batch * p.outer;
    const int64_t tasks = std::min(items, task_count(items * p.size * p.inner, threads));
    if (items == 0) return;
    args.parallel_for(tasks, [&](int64_t task) {
      const Range part = split_range(items, tasks, task);
      for (int64_t item = part.begin; item < part.end; ++item) {
        const int64_t batch = item / p.outer, rest = item % p.outer;
        const int64_t start = starts.as<int64_t>()[batch * starts.strides[0]];
        if (!p.fits(start)) args.reject();
        const auto at = [&](const TensorView& view, int64_t rows) {
          return static_cast<std::byte*>(view.at(batch * view.strides[0] + rest * rows * p.inner));
        };
        const Rows rows(p, dtype_bytes(out.schema.dtype, p.inner), at(out, p.size));
        rows.update(at(cache, p.held), at(added, p.added), p.fits(start) ? start : 0);
      }
    });
  }
};

}  // namespace

void cache_update_copy(RoutineList& list) {
  for (const DType dtype : {DType::float32, DType::int64, DType::int32, DType::boolean}) {
    list.add<CacheUpdateCopy>(dtype);
  }
}

}  // namespace softneuro
