#include "tune/records/cost_line.h"

#include <array>

#include "base/hash.h"
#include "tune/records/cost_records.h"
#include "tune/records/record_text.h"

namespace softneuro {
namespace {

constexpr std::string_view tag = "sn3 ";
constexpr std::string_view old_tags[] = {"sn1 ", "sn2 "};
constexpr std::string_view separator = " = ";
constexpr std::string_view before_checksum = " #";
constexpr size_t checksum_digits = 16;
// Kind, version, device, threads, graph, signature and descriptor.
constexpr size_t key_fields = 7;
using KeyFields = std::array<std::string_view, key_fields>;

std::array<char, checksum_digits> checksum(std::string_view text) {
  static constexpr char digits[] = "0123456789abcdef";
  std::array<char, checksum_digits> hex;
  uint64_t left = bytes_hash_words(text.data(), text.size()).low;
  for (char& c : hex) c = digits[left >> 60], left <<= 4;
  return hex;
}

// False unless there are as many as a key has.
bool cut(std::string_view text, KeyFields& fields) {
  for (size_t i = 0; i < key_fields; ++i) {
    const size_t space = text.find(' ');
    if ((space == std::string_view::npos) != (i + 1 == key_fields)) return false;
    fields[i] = text.substr(0, space);
    text.remove_prefix(std::min(text.size(), space + 1));
  }
  return true;
}

std::string_view kind_of(std::string_view key) { return key.substr(0, key.find(' ')); }

// Whether the key has the fields that keys have, and the value those of its kind; of other kinds anything is good.
bool is_whole(std::string_view key, std::string_view value) {
  bool good = true;
  with_record_kind(kind_of(key), [&]<typename Record>(const Record&) {
    KeyFields fields;
    good = cut(key, fields) && parse_integer(fields[3]) && parse_record<Record>(value);
    for (const size_t i : {1, 2, 4, 5, 6}) good = good && is_escaped_field(fields[i]);
  });
  return good;
}

}  // namespace

std::string cost_key_text(std::string_view kind, const CostKey& key) {
  std::string text(kind);
  text += ' ' + escape_field(key.version) + ' ' + escape_field(key.device) + ' ' + std::to_string(key.threads);
  return text + ' ' + escape_field(key.graph) + ' ' + escape_field(key.signature) + ' ' + escape_field(key.descriptor);
}

std::optional<CostKeyParts> parse_cost_key(std::string_view text) {
  KeyFields fields;
  if (!with_record_kind(kind_of(text), [](const auto&) {}) || !cut(text, fields)) return std::nullopt;
  const auto version = unescape_field(fields[1]), device = unescape_field(fields[2]), graph = unescape_field(fields[4]),
             signature = unescape_field(fields[5]), descriptor = unescape_field(fields[6]);
  const auto threads = parse_integer(fields[3]);
  if (!version || !device || !threads || !graph || !signature || !descriptor) return std::nullopt;
  return CostKeyParts{std::string(fields[0]),
                      {*device, static_cast<int>(*threads), *signature, *descriptor, *version, *graph}};
}

std::string cost_line_checksum(std::string_view text) {
  const auto sum = checksum(text);
  return {sum.begin(), sum.end()};
}

std::string format_cost_line(std::string_view key, std::string_view value) {
  std::string text;
  text.reserve(tag.size() + key.size() + separator.size() + value.size() + before_checksum.size() + checksum_digits +
               1);
  text.append(tag).append(key).append(separator).append(value);
  const auto sum = checksum(text);
  text.append(before_checksum).append(sum.data(), sum.size());
  return text + "\n";
}

CostLine parse_cost_line(std::string_view text) {
  for (const std::string_view old : old_tags) {
    if (text.starts_with(old)) return {LineKind::old};
  }
  constexpr size_t tail = before_checksum.size() + checksum_digits;
  if (text.size() >= max_cost_line || text.size() < tag.size() + tail || !text.starts_with(tag)) return {};
  const std::string_view body = text.substr(0, text.size() - tail), end = text.substr(body.size());
  const auto sum = checksum(body);
  if (!end.starts_with(before_checksum)) return {};
  if (end.substr(before_checksum.size()) != std::string_view(sum.data(), sum.size())) return {};
  const size_t middle = body.rfind(separator);
  if (middle == std::string_view::npos || middle < tag.size()) return {};
  const std::string_view key = body.substr(tag.size(), middle - tag.size());
  const std::string_view value = body.substr(middle + separator.size());
  if (!is_whole(key, value)) return {};
  return {LineKind::record, key, value};
}

}  // namespace softneuro
