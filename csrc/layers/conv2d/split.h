// How a convolution is dealt to threads: pieces of images x output channel panels x rows (or pixels).
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

// Items of nearly equal work; a task takes a range of them, so that scratch is per task however many images there are.
// The default has no work.
class WorkSplit {
 public:
  int64_t tasks = 0;

  WorkSplit() = default;
  // Whole images if they come out even; else each image is cut along `by`, and along the other where that is too short.
  WorkSplit(int64_t images, int64_t panels, int64_t rows, int threads, SplitBy by)
      : images_(images), panels_(panels), rows_(rows) {
    if (threads > 1 && images % threads != 0 && images < 4 * threads) {
      const bool by_rows = by == SplitBy::rows;
      const int64_t first = std::min<int64_t>(threads, by_rows ? rows : panels);
      const int64_t second = std::min((threads + first - 1) / first, by_rows ? panels : rows);
      row_parts_ = by_rows ? first : second;
      panel_parts_ = by_rows ? second : first;
    }
    tasks = std::min<int64_t>(threads, items());
  }

  // Calls body(image, panels, rows) for each piece of the task's share.
  template <typename Body>
  void for_task(int64_t task, const Body& body) const {
    const Range share = split_range(items(), tasks, task);
    for (int64_t item = share.begin; item < share.end; ++item) {
      const int64_t row_part = item % row_parts_, panel_part = item / row_parts_ % panel_parts_;
      body(item / (row_parts_ * panel_parts_), split_range(panels_, panel_parts_, panel_part),
           split_range(rows_, row_parts_, row_part));
    }
  }

 private:
  int64_t items() const { return images_ * panel_parts_ * row_parts_; }

  int64_t images_ = 0, panels_ = 0, rows_ = 0;
  int64_t panel_parts_ = 1, row_parts_ = 1;
};

}  // namespace softneuro
