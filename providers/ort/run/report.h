// What the provider did, as JSON lines in a file that the provider's entry `report` names.
#pragma once

#include <chrono>
#include <mutex>
#include <string>
#include <string_view>

namespace softneuro::ort {

// One object, built field by field.
class Json {
 public:
  Json& add(std::string_view name, std::string_view text);
  Json& add(std::string_view name, const char* text) { return add(name, std::string_view(text)); }
  Json& add(std::string_view name, double number);
  Json& add_raw(std::string_view name, std::string_view json);
  std::string str() const { return "{" + body_ + "}"; }

 private:
  std::string body_;
};

// Elements separated by commas.
class JsonList {
 public:
  void add(const Json& object) { body_ += (body_.empty() ? "" : ",") + object.str(); }
  std::string str() const { return "[" + body_ + "]"; }

 private:
  std::string body_;
};

// Thread-safe. Without a path nothing is written; a file that cannot be written costs one warning.
class Report {
 public:
  explicit Report(std::string path) : path_(std::move(path)) {}
  bool wanted() const { return !path_.empty(); }
  void write(const Json& object);
  // Reports the progress of tuning, a few times a second.
  void progress(int done, int total);

 private:
  std::mutex mutex_;
  std::string path_;
  bool begun_ = false;  // the file has been written to
  std::chrono::steady_clock::time_point last_progress_;
};

}  // namespace softneuro::ort
