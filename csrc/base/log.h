// Messages that are no errors. The core prints warnings to stderr; a host plugs its own logging in.
#pragma once

#include <functional>
#include <string>

namespace softneuro {

enum class LogLevel : unsigned char { debug, progress, info, warning };

using LogSink = std::function<void(LogLevel level, const std::string& message)>;

// Thread-safe. The sink is called from whatever thread logs, never by two at once, and must not log itself; what it
// throws is dropped.
void log_message(LogLevel level, const std::string& message);
// An empty sink restores the default: warnings to stderr, nothing else.
void set_log_sink(LogSink sink);

inline void log_debug(const std::string& message) { log_message(LogLevel::debug, message); }
inline void log_progress(const std::string& message) { log_message(LogLevel::progress, message); }
inline void log_info(const std::string& message) { log_message(LogLevel::info, message); }
inline void log_warning(const std::string& message) { log_message(LogLevel::warning, message); }

}  // namespace softneuro
