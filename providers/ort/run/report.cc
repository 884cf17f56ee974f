#include "providers/ort/run/report.h"

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <utility>

#include "base/log.h"
#include "base/text.h"

namespace softneuro::ort {
namespace {

std::string quoted(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      result += {'\\', c};
    } else if (static_cast<unsigned char>(c) < 0x20) {
      char escape[8];
      std::snprintf(escape, sizeof(escape), "\\u%04x", static_cast<unsigned>(c));
      result += escape;
    } else {
      result += c;
    }
  }
  return result + "\"";
}

}  // namespace

Json& Json::add_raw(std::string_view name, std::string_view json) {
  if (!body_.empty()) body_ += ",";
  body_ += quoted(name) + ":";
  body_ += json;
  return *this;
}

Json& Json::add(std::string_view name, std::string_view text) { return add_raw(name, quoted(text)); }

Json& Json::add(std::string_view name, double number) {
  return add_raw(name, std::isfinite(number) ? exact_number(number) : std::string("null"));
}

void Report::write(const Json& object) {
  const std::lock_guard lock(mutex_);
  if (path_.empty()) return;
  if (std::exchange(begun_, true) && !std::filesystem::exists(path_)) {  // nobody wants it any more
    path_.clear();
    return;
  }
  std::ofstream file(path_, std::ios::app);
  file << object.str() << "\n";
  if (file.good()) return;
  log_warning("the report " + path_ + " cannot be written");
  path_.clear();
}

void Report::progress(int done, int total) {
  if (!wanted()) return;
  {
    const std::lock_guard lock(mutex_);
    const auto now = std::chrono::steady_clock::now();
    if (done < total && now - last_progress_ < std::chrono::milliseconds(200)) return;
    last_progress_ = now;
  }
  Json line;
  write(line.add("event", "progress").add("done", done).add("total", total));
}

}  // namespace softneuro::ort
