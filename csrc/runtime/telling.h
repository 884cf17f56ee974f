// A call of which the host's own exceptions are told from all others. Internal to runtime/.
#pragma once

#include <algorithm>
#include <exception>
#include <string>

#include "runtime/call.h"

namespace softneuro {

// What the host has raised: the caller's.
struct HostRaised {
  std::exception_ptr error;
};

// The call, with the host's own exceptions told from all others.
class Telling : public RegionCall {
 public:
  explicit Telling(RegionCall& call) : call_(call) {}
  LoweredCall lower() override { return call_.lower(); }
  void run_host() override {
    run([&] { call_.run_host(); });
  }
  void run_instead() override {
    run([&] { call_.run_instead(); });
  }
  void run_net(const Ready& ready) override { call_.run_net(ready); }
  double error(double max_error) override { return call_.error(max_error); }
  int threads() const override { return call_.threads(); }
  bool has_values() const override { return call_.has_values(); }
  bool made_up() const override { return call_.made_up(); }
  bool open_shapes() const override { return call_.open_shapes(); }
  std::string declined() const override { return call_.declined(); }
  bool anew() const override { return call_.anew(); }
  void progress(int done, int total) override { call_.progress(done, total); }
  std::string inputs() const override { return call_.inputs(); }

 private:
  template <typename Run>
  static void run(const Run& run) {
    try {
      run();
    } catch (const NoHost&) {
      throw;
    } catch (...) {
      throw HostRaised{std::current_exception()};
    }
  }

  RegionCall& call_;
};

inline double seconds_of(int64_t ns) { return std::max(1e-9 * static_cast<double>(ns), 1e-9); }
inline int64_t ns_of(double seconds) { return static_cast<int64_t>(1e9 * seconds); }

}  // namespace softneuro
