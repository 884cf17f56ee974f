#include "tune/record_text.h"

#include <charconv>

#include "base/text.h"

namespace softneuro {
namespace {

bool plain(char c) { return c > ' ' && c < 0x7f && c != '%'; }

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

template <typename T>
std::optional<T> parse_number(std::string_view text) {
  T value{};
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || result.ec != std::errc() || result.ptr != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

std::string escape_field(std::string_view text) {
  if (text.empty()) return "%";
  static constexpr char digits[] = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    if (plain(c)) {
      out += c;
    } else {
      const auto byte = static_cast<unsigned char>(c);
      out += {'%', digits[byte >> 4], digits[byte & 15]};
    }
  }
  return out;
}

std::optional<std::string> unescape_field(std::string_view text) {
  if (text == "%") return std::string();
  if (text.empty()) return std::nullopt;
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      if (!plain(text[i])) return std::nullopt;
      out += text[i];
      continue;
    }
    if (i + 2 >= text.size()) return std::nullopt;
    const int high = hex_digit(text[i + 1]), low = hex_digit(text[i + 2]);
    if (high < 0 || low < 0) return std::nullopt;
    const char c = static_cast<char>(high * 16 + low);
    if (plain(c)) return std::nullopt;  // one spelling per text
    out += c;
    i += 2;
  }
  return out;
}

std::string line_checksum(std::string_view line) { return content_hash(line).substr(0, 16); }

std::optional<double> parse_double(std::string_view text) { return parse_number<double>(text); }
std::optional<int64_t> parse_integer(std::string_view text) { return parse_number<int64_t>(text); }

}  // namespace softneuro
