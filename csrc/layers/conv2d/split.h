// How a convolution is dealt to threads: pieces of images x output channel panels x rows (or pixels), and how many of
// them there should be.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "base/error.h"
#include "base/threads.h"

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
  // or does not come out even.
  WorkSplit(int64_t images, int64_t panels, int64_t rows, int threads, SplitBy by)
      : images_(images),
        by_rows_(by == SplitBy::rows),
        major_(by_rows_ ? rows : panels),
        minor_(by_rows_ ? panels : rows) {
    if (threads == 1 || images % threads == 0 || images >= 4 * threads) {
      tasks = std::min<int64_t>(threads, images);
      return;
    }
    major_parts_ = std::min<int64_t>(threads, major_);
    minor_parts_ = std::min((threads + major_parts_ - 1) / major_parts_, minor_);
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
  int64_t images_ = 0;
  bool by_rows_ = true;
  int64_t major_ = 0, minor_ = 0;              // steps along the axis of `by`, and along the other
  int64_t major_parts_ = 0, minor_parts_ = 0;  // of an image; 0: images are whole
  int64_t rest_ = 0;                           // of the major axis, dealt along the minor one
};

}  // namespace softneuro
