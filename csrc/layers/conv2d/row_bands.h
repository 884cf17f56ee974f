// What routines share that go on with a convolution's rows while these are in cache, a band of them at a time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/threads.h"
#include "layers/contract/params.h"
#include "layers/conv2d/rows.h"
#include "layers/shared/split.h"

namespace softneuro {

// The rows of one image that a task has in the planes of some channel blocks.
class KeptRows {
 public:
  // Forgets those of another image.
  void begin(int64_t image) {
    if (std::exchange(image_, image) != image) have_ = {0, 0};
  }
  // The first of the rows `need` that is missing.
  int64_t first_missing(Range need) const {
    return need.begin >= have_.begin ? std::clamp(have_.end, need.begin, need.end) : need.begin;
  }
  // Brings the rows `need` to the start of the planes: what is there already is moved. The first that is still missing.
  int64_t bring(float* planes, int64_t plane, int64_t blocks, int64_t row_floats, Range need) const {
    const int64_t kept = first_missing(need) - need.begin;
    if (kept > 0 && need.begin > have_.begin) {
      for (int64_t block = 0; block < blocks; ++block) {
        float* const to = planes + block * plane;
        std::copy_n(to + (need.begin - have_.begin) * row_floats, kept * row_floats, to);
      }
    }
    return need.begin + kept;
  }
  // All planes have them.
  void set(Range rows) { have_ = rows; }

 private:
  int64_t image_ = -1;
  Range have_{0, 0};
};

// Calls body(image, rows, kept, scratch) for pieces of the work, output rows that is. kept: what is there of the rows
// below them, from the task's piece before.
template <typename Body>
void for_row_bands(const RunArgs& args, const WorkSplit& split, const Body& body) {
  SharedWork work(split);
  args.parallel_for(split.tasks, [&](int64_t task) {
    std::byte* const scratch = args.workspace.task(task);
    KeptRows kept;
    work.for_task(task, [&](int64_t image, Range, Range rows) {
      kept.begin(image);
      body(image, rows, kept, scratch);
    });
  });
}

// A convolution's rows in a task's scratch, a band of them at a time: planes of its channel blocks, and what the
// convolution itself needs behind them.
class ConvBand {
 public:
  explicit ConvBand(std::unique_ptr<const Prepared> conv)
      : owner_(std::move(conv)), conv_(dynamic_cast<const PreparedConv2dRows&>(*owner_)) {}

  int64_t row_step() const { return conv_.row_step(); }
  // WorkSplit's: where rows are computed by several, what is next to each other depends on where a piece begins.
  int64_t unit() const { return row_step() == 1 ? 1 : 0; }
  // Sets the planes' size; `most_rows`: what a band needs at most.
  void set_size(int64_t blocks, int64_t row_floats, int64_t most_rows) {
    blocks_ = blocks, row_floats_ = row_floats, plane_rows_ = most_rows + row_step() - 1;
  }
  int64_t plane() const { return plane_rows_ * row_floats_; }  // floats
  size_t bytes() const { return planes_bytes() + round_to_line(conv_.rows_scratch(plane_rows_)); }

  // The planes, which begin with rows `need` of an image: those that are kept are moved, the others computed.
  float* fill(const void* src, Range need, KeptRows& kept, std::byte* scratch) const {
    auto* const planes = reinterpret_cast<float*>(scratch);
    const int64_t missing = kept.bring(planes, plane(), blocks_, row_floats_, need);
    if (missing < need.end) {
      conv_.run_rows({.src = src,
                      .dst = planes + (missing - need.begin) * row_floats_,
                      .rows = {missing, need.end},
                      .plane_rows = plane_rows_,
                      .scratch = scratch + planes_bytes()});
    }
    kept.set(need);
    return planes;
  }

 private:
  size_t planes_bytes() const { return round_to_line(static_cast<size_t>(blocks_ * plane()) * sizeof(float)); }

  std::unique_ptr<const Prepared> owner_;
  const PreparedConv2dRows& conv_;
  int64_t blocks_ = 0, row_floats_ = 0, plane_rows_ = 0;
};

// The output rows of a band, and the convolution's own params.
struct BandTuning {
  int band;
  Tuning conv;

  static BandTuning of(const Tuning& tuning) {
    if (tuning.empty()) throw Error("band is missing");
    return {parse_positive("band", tuning[0]), {tuning.begin() + 1, tuning.end()}};
  }
  operator Tuning() const {
    Tuning tuning{band};
    tuning.insert(tuning.end(), conv.begin(), conv.end());
    return tuning;
  }
};

// Made of any routine of conv2d that can be asked for rows. Stages: made from a problem, its `conv` is that routine's.
template <typename Stages>
class RowBandsRoutine : public Routine {
 public:
  RowBandsRoutine(const char* type, std::unique_ptr<const Routine> conv)
      : Routine(bands_info(type, conv->info())), conv_(std::move(conv)) {}

  bool promising(const Problem& problem) const override { return conv_->promising(Stages(problem).conv); }
  std::vector<std::string> param_names() const override {
    std::vector<std::string> names = conv_->param_names();
    names.insert(names.begin(), "band");
    return names;
  }
  std::string pack_key(const Problem& problem, const Tuning& tuning) const override {
    return conv_->pack_key(Stages(problem).conv, BandTuning::of(tuning).conv);
  }
  double expected_error(const Problem& problem, const Tuning& tuning) const override {
    return conv_->expected_error(Stages(problem).conv, BandTuning::of(tuning).conv);
  }

 protected:
  const Routine& conv() const { return *conv_; }

 private:
  static RoutineInfo bands_info(const char* type, const RoutineInfo& conv) {
    RoutineInfo info = conv;
    info.layer_type = type;
    info.algorithm = conv.algorithm + "_bands";
    return info;
  }

  std::unique_ptr<const Routine> conv_;
};

}  // namespace softneuro
