#include "base/log.h"

#include <cstdio>
#include <memory>
#include <mutex>
#include <utility>

namespace softneuro {
namespace {

struct State {
  std::mutex mutex;
  std::mutex calling;
  std::shared_ptr<const LogSink> sink;
};

// Never destroyed: threads may log during static destruction.
State& state() {
  static auto* instance = new State;
  return *instance;
}

}  // namespace

void log_message(LogLevel level, const std::string& message) {
  std::shared_ptr<const LogSink> sink;
  {
    const std::lock_guard lock(state().mutex);
    sink = state().sink;
  }
  const std::lock_guard lock(state().calling);
  if (sink) {
    try {
      (*sink)(level, message);
    } catch (...) {  // a message is not worth failing for
    }
  } else if (level == LogLevel::warning) {
    std::fprintf(stderr, "softneuro: %s\n", message.c_str());
  }
}

void set_log_sink(LogSink sink) {
  auto next = sink ? std::make_shared<const LogSink>(std::move(sink)) : nullptr;
  const std::lock_guard lock(state().mutex);
  state().sink.swap(next);
}

}  // namespace softneuro
