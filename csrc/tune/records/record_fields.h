// A record as text: its named fields as `name=value`, separated by single spaces. What a record is made of, its static
// fields(self, field) says once: it calls field(name, member, range) for each.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "tune/records/record_text.h"

namespace softneuro {

// NaN is in none.
template <typename T>
struct FieldRange {
  T least, most;
  bool has(T value) const { return value >= least && value <= most; }
};

inline std::string format_value(double value) { return exact_number(value); }
inline std::string format_value(int value) { return std::to_string(value); }

// False if the text is no such value.
bool parse_value(std::string_view text, double& value);
bool parse_value(std::string_view text, int& value);

// A record's text, cut at spaces and equals signs.
class FieldTexts {
 public:
  explicit FieldTexts(std::string_view text);
  bool complete() const { return complete_; }
  size_t count() const { return count_; }
  // Null if it is not there; the first of several.
  const std::string_view* find(std::string_view name) const;

 private:
  static constexpr size_t most = 8;
  std::array<std::pair<std::string_view, std::string_view>, most> fields_;
  size_t count_ = 0;
  bool complete_ = false;
};

template <typename Record>
std::string format_record(const Record& record) {
  std::string text;
  Record::fields(record, [&](std::string_view name, const auto& value, const auto&) {
    if (!text.empty()) text += ' ';
    text.append(name).append("=").append(format_value(value));
  });
  return text;
}

// Fields come in any order; nothing if a field is missing, unknown, there twice or not in its range.
template <typename Record>
std::optional<Record> parse_record(std::string_view text) {
  const FieldTexts texts(text);
  Record record;
  size_t count = 0;
  bool good = texts.complete();
  Record::fields(record, [&](std::string_view name, auto& value, const auto& range) {
    const std::string_view* own = texts.find(name);
    good = good && own != nullptr && parse_value(*own, value) && range.has(value);
    ++count;
  });
  return good && count == texts.count() ? std::optional(record) : std::nullopt;
}

// Throws Error naming the field that is not in its range.
template <typename Record>
void check_record(const Record& record) {
  Record::fields(record, [](std::string_view name, const auto& value, const auto& range) {
    if (range.has(value)) return;
    throw Error(std::string(name) + " of a record of kind " + std::string(Record::kind) + " is " + format_value(value) +
                    ", not from " + format_value(range.least) + " to " + format_value(range.most),
                "cost database");
  });
}

}  // namespace softneuro
