// Reads the text files that tuning keeps beside a model: lines of fields, each by its name, a space between fields.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace softneuro {

// Whatever is not as it should be is an Error that names the line.
class FieldReader {
 public:
  static constexpr size_t max_line = 64 * 1024;
  static constexpr int max_index = 10'000'000;

  // `remedy` says what to do about a damaged file. All three are borrowed.
  FieldReader(std::string_view text, const std::string& where, const char* remedy)
      : text_(text), where_(where), remedy_(remedy) {}

  bool done() const { return text_.empty(); }
  // Fields of the next line, at most `most`.
  std::vector<std::string_view> next(size_t most = 8);
  [[noreturn]] void fail(const std::string& what) const;
  // `count` fields, of which the first is `name`.
  void expect(const std::vector<std::string_view>& fields, std::string_view name, size_t count) const;

  std::string text(std::string_view field) const;  // as escape_field() made it
  int index(std::string_view field) const;
  int64_t count(std::string_view field) const;
  // A number of nothing or more; `what` names it: "an error is not a number from 0 on".
  double amount(std::string_view field, const char* what) const;

 private:
  std::string_view text_;
  const std::string& where_;
  const char* remedy_;
  size_t number_ = 0;
};

// A line that FieldReader takes. Throws Error if it were too long; `where` is the file's kind.
std::string line_of_fields(std::initializer_list<std::string> fields, const char* where);

}  // namespace softneuro
