#include "tune/measure/timekeeper.h"

#include <chrono>
#include <utility>

namespace softneuro {

static double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

Timekeeper::Timekeeper(double budget_s, Now now)
    : now_(now ? std::move(now) : Now(steady_seconds)), budget_(budget_s), start_(now_()), since_(start_) {
  stages_.push_back({"other", 0, 1});
}

size_t Timekeeper::index_of(std::string_view name) {
  for (size_t i = 0; i < stages_.size(); ++i) {
    if (stages_[i].name == name) return i;
  }
  stages_.push_back({std::string(name), 0, 0});
  return stages_.size() - 1;
}

void Timekeeper::charge() {
  const double now = now_();
  stages_[current_].seconds += now - since_;
  since_ = now;
}

Timekeeper::Stage::Stage(Timekeeper& keeper, std::string_view name) : keeper_(keeper), outer_(keeper.current_) {
  keeper_.charge();
  keeper_.current_ = keeper_.index_of(name);
  ++keeper_.stages_[keeper_.current_].times;
}

Timekeeper::Stage::~Stage() {
  keeper_.charge();
  keeper_.current_ = outer_;
}

std::vector<StageTime> Timekeeper::stages() {
  charge();
  return stages_;
}

}  // namespace softneuro
