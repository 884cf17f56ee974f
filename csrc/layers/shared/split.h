// How work is dealt to threads: pieces of images x output channel panels x rows (or pixels), and how many of them there
// should be.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <new>
#include <string>

#include "base/error.h"
#include "base/threads.h"
#include "kernels/integers.h"
#include "layers/contract/routine.h"

namespace softneuro {

enum class SplitBy : int { rows, panels };
// From a routine param. Throws Error.
inline SplitBy parse_split(int value) {
  if (value != 0 && value != 1) throw Error("split must be 0 (rows) or 1 (panels), not " + std::to_string(value));
  return static_cast<SplitBy>(value);
}

// Threads that pay for so much work. Waking a pool's threads and waiting for the last of them takes 1-3 us while they
// spin and far more where another program has their cores: a task that is worth less than some microseconds is no task.
inline int worth_threads(double flop, double bytes, int threads) {
  constexpr double flop_per_us = 1e5, bytes_per_us = 4e4, least_us = 5;  // of one core, as they come in a net
  const double us = flop / flop_per_us + bytes / bytes_per_us;
  return static_cast<int>(std::clamp(us / least_us, 1.0, static_cast<double>(std::max(threads, 1))));
}

// Pieces of nearly equal work; a task may get several, so that scratch is per task however many there are. The default
// has no work.
class WorkSplit {
 public:
  int64_t tasks = 0;

  WorkSplit() = default;
  // Whole images if they come out even; else each image is cut along `by`, and along the other where that is too short
  // or does not come out even. `unit`: steps along `by` that SharedWork may give to another task; 0: it gives none.
  WorkSplit(int64_t images, int64_t panels, int64_t rows, int threads, SplitBy by, int64_t unit = 0)
      : images_(images),
        by_rows_(by == SplitBy::rows),
        major_(by_rows_ ? rows : panels),
        minor_(by_rows_ ? panels : rows),
        unit_(unit) {
    if (threads == 1 || images % threads == 0 || images >= 4 * threads) {
      tasks = std::min<int64_t>(threads, images);
      return;
    }
    major_parts_ = std::min<int64_t>(threads, major_);
    minor_parts_ = std::min(ceil_div(threads, major_parts_), minor_);
    tasks = std::min<int64_t>(threads, major_parts_ * minor_parts_);
    // With few steps along the first axis the rest of an uneven division counts: it is dealt along the other one.
    constexpr int64_t few = 16;
    const int64_t each = major_ / tasks;
    if (each > 0 && each < few && minor_ >= tasks) rest_ = major_ % tasks;
  }

  // Calls body(image, panels, rows) for each piece of the task's share.
  template <typename Body>
  void for_task(int64_t task, const Body& body) const {
    const auto call = [&](int64_t image, Range major, Range minor) {
      if (major.begin < major.end && minor.begin < minor.end) {
        body(image, by_rows_ ? minor : major, by_rows_ ? major : minor);
      }
    };
    if (major_parts_ == 0) {
      const Range share = split_range(images_, tasks, task);
      for (int64_t image = share.begin; image < share.end; ++image) call(image, {0, major_}, {0, minor_});
      return;
    }
    const int64_t parts = major_parts_ * minor_parts_;
    for (int64_t image = 0; image < images_; ++image) {
      if (rest_ > 0) {
        call(image, split_range(major_ - rest_, tasks, task), {0, minor_});
        call(image, {major_ - rest_, major_}, split_range(minor_, tasks, task));
        continue;
      }
      const Range share = split_range(parts, tasks, task);
      for (int64_t part = share.begin; part < share.end; ++part) {
        call(image, split_range(major_, major_parts_, part % major_parts_),
             split_range(minor_, minor_parts_, part / major_parts_));
      }
    }
  }

 private:
  friend class SharedWork;

  int64_t images_ = 0;
  bool by_rows_ = true;
  int64_t major_ = 0, minor_ = 0;              // steps along the axis of `by`, and along the other
  int64_t major_parts_ = 0, minor_parts_ = 0;  // of an image; 0: images are whole
  int64_t rest_ = 0;                           // of the major axis, dealt along the minor one
  int64_t unit_ = 0;
};

// The tasks' shares during one run. Cores are not equally fast, nor at all times, and halves of equal work took one of
// two cores a tenth longer than the other for minutes: a task that is done with its share takes from those of others.
// What becomes of a piece must not depend on who computes it or what else comes in the same piece.
class SharedWork {
 public:
  explicit SharedWork(const WorkSplit& split)
      : split_(split), each_(split.unit_ > 0 ? ceil_div(split.major_ - split.rest_, split.unit_) : 0) {
    // Few pieces are rather kept whole, as is what is cut along both axes.
    constexpr int64_t fewest = 4, most = int64_t{1} << 31;
    const int64_t pieces = split.images_ * each_;
    gives_ = split.tasks > 1 && split.tasks <= most_tasks && split.minor_parts_ <= 1 &&
             pieces >= fewest * split.tasks && pieces < most;
    if (!gives_) return;
    for (int64_t task = 0; task < split.tasks; ++task) {
      new (&shares_.of[task]) Share{pack(split_range(pieces, split.tasks, task))};
    }
  }
  SharedWork(const SharedWork&) = delete;
  SharedWork& operator=(const SharedWork&) = delete;

  // Calls body(image, panels, rows) for pieces of the task's share, in order, and then for what it takes from others'.
  template <typename Body>
  void for_task(int64_t task, const Body& body) {
    if (!gives_) return split_.for_task(task, body);
    if (split_.rest_ > 0) {
      const Range minor = split_range(split_.minor_, split_.tasks, task);
      for (int64_t image = 0; image < split_.images_ && minor.begin < minor.end; ++image) {
        call(body, image, {split_.major_ - split_.rest_, split_.major_}, minor);
      }
    }
    for (int64_t i = 0; i < split_.tasks; ++i) {
      const bool own = i == 0;
      std::atomic<uint64_t>& from = share((task + i) % split_.tasks);
      for (Range taken; (taken = take(from, own)).begin < taken.end;) run(taken, body);
    }
  }

 private:
  static constexpr int64_t most_tasks = 64;
  struct alignas(64) Share {
    std::atomic<uint64_t> left;  // the first piece in the low half, the end in the high one
  };
  union Shares {  // of which those of the split's tasks are made: the lines of all are an eighth of a first cache
    Shares() {}
    Share of[most_tasks];
  };

  static uint64_t pack(Range range) {
    return static_cast<uint64_t>(range.end) << 32 | static_cast<uint64_t>(range.begin);
  }
  static Range unpack(uint64_t left) {
    return {static_cast<int64_t>(left & 0xffffffff), static_cast<int64_t>(left >> 32)};
  }
  std::atomic<uint64_t>& share(int64_t task) { return shares_.of[task].left; }

  // Half of what is left, as each piece has its beginning and end; its owner the first half, others the last. Less than
  // an eighth of a share is not cut again.
  Range take(std::atomic<uint64_t>& from, bool own) const {
    const int64_t least = std::max<int64_t>(split_.images_ * each_ / split_.tasks / 8, 1);
    uint64_t seen = from.load(std::memory_order_relaxed);
    while (true) {
      const Range left = unpack(seen);
      const int64_t count = left.end - left.begin;
      if (count <= 0) return {0, 0};
      const int64_t part = count < 2 * least ? count : (count + 1) / 2;
      const Range taken = own ? Range{left.begin, left.begin + part} : Range{left.end - part, left.end};
      const Range rest = own ? Range{taken.end, left.end} : Range{left.begin, taken.begin};
      if (from.compare_exchange_weak(seen, pack(rest), std::memory_order_relaxed)) return taken;
    }
  }

  template <typename Body>
  void run(Range pieces, const Body& body) const {
    for (int64_t piece = pieces.begin; piece < pieces.end;) {
      const int64_t image = piece / each_, first = image * each_, end = std::min(pieces.end, first + each_);
      const int64_t last = std::min((end - first) * split_.unit_, split_.major_ - split_.rest_);
      call(body, image, {(piece - first) * split_.unit_, last}, {0, split_.minor_});
      piece = end;
    }
  }
  template <typename Body>
  void call(const Body& body, int64_t image, Range major, Range minor) const {
    body(image, split_.by_rows_ ? minor : major, split_.by_rows_ ? major : minor);
  }

  const WorkSplit& split_;
  int64_t each_;  // pieces of an image
  bool gives_ = false;
  Shares shares_;
};

// A run whose work is dealt, with scratch for each task: both are set as it is constructed, unless there is no work.
class PreparedSplit : public Prepared {
 public:
  explicit PreparedSplit(const Problem& problem, std::shared_ptr<const Packed> packed = nullptr)
      : packed_(std::move(packed)), residual_(problem.layer->post.residual) {}

  WorkspaceSize workspace() const override { return {.task = scratch_, .tasks = split_.tasks}; }

 protected:
  // Calls body(image, panels, rows, scratch) for each piece, with the scratch of its task.
  template <typename Body>
  void for_pieces(const RunArgs& args, const Body& body) const {
    SharedWork work(split_);
    args.parallel_for(split_.tasks, [&](int64_t task) {
      std::byte* const scratch = args.workspace.task(task);
      work.for_task(task, [&](int64_t image, Range panels, Range rows) { body(image, panels, rows, scratch); });
    });
  }

  const std::shared_ptr<const Packed> packed_;  // null: it keeps none, or elsewhere
  const bool residual_;
  WorkSplit split_;
  size_t scratch_ = 0;  // bytes of a task
};

}  // namespace softneuro
