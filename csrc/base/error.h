// The one exception type of the core: what went wrong, where, and what to do about it.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>

namespace softneuro {

class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& what, std::string where = {}, std::string remedy = {})
      : std::runtime_error(format(what, where, remedy)), where_(std::move(where)), remedy_(std::move(remedy)) {}

  const std::string& where() const { return where_; }
  const std::string& remedy() const { return remedy_; }

 private:
  static std::string format(const std::string& what, const std::string& where, const std::string& remedy) {
    std::string text = where.empty() ? what : where + ": " + what;
    if (!remedy.empty()) text += " (" + remedy + ")";
    return text;
  }

  std::string where_, remedy_;
};

}  // namespace softneuro
