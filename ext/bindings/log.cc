// The core's messages for Python.
#include "base/log.h"

#include <deque>
#include <mutex>
#include <utility>

#include <pybind11/pybind11.h>

#include "ext/bindings/bindings.h"

namespace py = pybind11;

namespace softneuro::bindings {
namespace {

// Whoever logs may hold locks of the core that a thread with the GIL waits for, so a message is left here and the
// interpreter fetches it at its next occasion.
struct Mailbox {
  std::mutex mutex;
  std::deque<std::pair<LogLevel, std::string>> messages;
  PyObject* receiver = nullptr;  // read and changed with the GIL
};

// Never destroyed: threads may log during static destruction.
Mailbox& mailbox() {
  static auto* instance = new Mailbox;
  return *instance;
}

int deliver(void*) {
  Mailbox& box = mailbox();
  for (;;) {
    std::pair<LogLevel, std::string> next;
    {
      const std::lock_guard lock(box.mutex);
      if (box.messages.empty()) return 0;
      next = std::move(box.messages.front());
      box.messages.pop_front();
    }
    if (box.receiver == nullptr) continue;
    try {
      py::reinterpret_borrow<py::function>(box.receiver)(static_cast<int>(next.first), next.second);
    } catch (py::error_already_set& error) {
      error.discard_as_unraisable("softneuro's log");
    }
  }
}

void leave(LogLevel level, const std::string& message) {
  {
    const std::lock_guard lock(mailbox().mutex);
    mailbox().messages.emplace_back(level, message);
  }
  Py_AddPendingCall(deliver, nullptr);  // refused if very many wait: then it goes with the next
}

void set_log_sink_of_python(const std::optional<py::function>& sink) {
  deliver(nullptr);
  PyObject* old = std::exchange(mailbox().receiver, sink ? py::function(*sink).release().ptr() : nullptr);
  Py_XDECREF(old);
  set_log_sink(sink ? LogSink(leave) : LogSink());
}

}  // namespace

void bind_log(py::module_& m) {
  m.def("set_log_sink", &set_log_sink_of_python, py::arg("sink"),
        "Called with (level, message) for each message, in the main thread: 0 debug, 1 progress, 2 info, 3 warning. "
        "None: warnings go to standard error.");
}

}  // namespace softneuro::bindings
