#include "tune/records/record_text.h"

#include <charconv>

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

bool is_escaped_field(std::string_view text) {
  if (text == "%") return true;
  for (size_t i = 0; i < text.size(); ++i) {
    if (plain(text[i])) continue;
    if (text[i] != '%' || i + 2 >= text.size()) return false;
    const int high = hex_digit(text[i + 1]), low = hex_digit(text[i + 2]);
    if (high < 0 || low < 0) return false;
    if (plain(static_cast<char>(high * 16 + low))) return false;  // one spelling per text
    i += 2;
  }
  return !text.empty();
}

std::optional<std::string> unescape_field(std::string_view text) {
  if (!is_escaped_field(text)) return std::nullopt;
  std::string out;
  for (size_t i = 0; text != "%" && i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    out += static_cast<char>(hex_digit(text[i + 1]) * 16 + hex_digit(text[i + 2]));
    i += 2;
  }
  return out;
}

std::optional<double> parse_double(std::string_view text) { return parse_number<double>(text); }
std::optional<int64_t> parse_integer(std::string_view text) { return parse_number<int64_t>(text); }

}  // namespace softneuro
