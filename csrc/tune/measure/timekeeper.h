// One clock for all of a tuning: where its time goes, and how much of its budget is left.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace softneuro {

// Seconds of one stage without those of the stages inside it, and how often it was entered.
struct StageTime {
  std::string name;
  double seconds = 0;
  int times = 0;
};

// Used by the thread that tunes alone.
class Timekeeper {
 public:
  using Now = std::function<double()>;  // seconds

  explicit Timekeeper(double budget_s, Now now = {});  // of the steady clock, unless another is given
  Timekeeper(const Timekeeper&) = delete;
  Timekeeper& operator=(const Timekeeper&) = delete;

  // Time goes to this stage while it lives.
  class Stage {
   public:
    Stage(Timekeeper& keeper, std::string_view name);
    ~Stage();
    Stage(const Stage&) = delete;
    Stage& operator=(const Stage&) = delete;

   private:
    Timekeeper& keeper_;
    size_t outer_;
  };
  [[nodiscard]] Stage in(std::string_view stage) { return Stage(*this, stage); }

  double now() const { return now_(); }
  double budget() const { return budget_; }
  double spent() const { return now_() - start_; }
  double left() const { return budget_ - spent(); }
  std::vector<StageTime> stages();  // in the order of their first entry

 private:
  size_t index_of(std::string_view name);
  void charge();

  Now now_;
  double budget_, start_, since_;
  std::vector<StageTime> stages_;
  size_t current_ = 0;
};

}  // namespace softneuro
