#include "layers/contract/attrs.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"

namespace softneuro {
namespace {

std::string value_text(const AttrValue& value) {
  if (const auto* i = std::get_if<int64_t>(&value)) return std::to_string(*i);
  if (const auto* d = std::get_if<double>(&value)) return exact_number(*d);
  if (const auto* s = std::get_if<std::string>(&value)) return *s;
  std::string text = "[";
  for (int64_t i : std::get<std::vector<int64_t>>(value)) {
    if (text.size() > 1) text += ',';
    text += std::to_string(i);
  }
  return text + "]";
}

template <typename T>
const T& typed(std::string_view name, const AttrValue* value, const char* wanted) {
  if (value == nullptr)
    throw Error("attribute '" + std::string(name) + "' is missing", {}, std::string("give ") + wanted);
  if (const T* held = std::get_if<T>(value)) return *held;
  throw Error("attribute '" + std::string(name) + "' is " + value_text(*value), {}, std::string("give ") + wanted);
}

}  // namespace

void Attrs::set(std::string_view name, AttrValue value) {
  const auto at = std::lower_bound(items_.begin(), items_.end(), name,
                                   [](const auto& item, std::string_view key) { return item.first < key; });
  if (at != items_.end() && at->first == name) {
    at->second = std::move(value);
  } else {
    items_.insert(at, {std::string(name), std::move(value)});
  }
}

void Attrs::erase(std::string_view name) {
  std::erase_if(items_, [&](const auto& item) { return item.first == name; });
}

const AttrValue* Attrs::find(std::string_view name) const {
  for (const auto& [key, value] : items_) {
    if (key == name) return &value;
  }
  return nullptr;
}

int64_t Attrs::integer(std::string_view name) const { return typed<int64_t>(name, find(name), "an integer"); }

int64_t Attrs::integer(std::string_view name, int64_t fallback) const {
  return find(name) == nullptr ? fallback : integer(name);
}

double Attrs::real(std::string_view name) const {
  const AttrValue* value = find(name);
  if (value != nullptr && std::holds_alternative<int64_t>(*value))
    return static_cast<double>(std::get<int64_t>(*value));
  return typed<double>(name, value, "a number");
}

double Attrs::real(std::string_view name, double fallback) const {
  return find(name) == nullptr ? fallback : real(name);
}

const std::string& Attrs::text(std::string_view name) const { return typed<std::string>(name, find(name), "a text"); }

std::string Attrs::text(std::string_view name, std::string_view fallback) const {
  return find(name) == nullptr ? std::string(fallback) : text(name);
}

const std::vector<int64_t>& Attrs::integers(std::string_view name) const {
  return typed<std::vector<int64_t>>(name, find(name), "a list of integers");
}

std::vector<int64_t> Attrs::integers(std::string_view name, std::vector<int64_t> fallback) const {
  return find(name) == nullptr ? std::move(fallback) : integers(name);
}

std::string Attrs::str() const {
  std::string text;
  for (const auto& [name, value] : items_) {
    if (!text.empty()) text += ',';
    text += name + "=" + value_text(value);
  }
  return text;
}

void Attrs::expect_only(std::initializer_list<std::string_view> known) const {
  for (const auto& [name, value] : items_) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    const std::string_view nearest = nearest_name(name, {known.begin(), known.size()});
    throw Error("unknown attribute '" + name + "'", {},
                nearest.empty() ? "this layer takes none" : "did you mean '" + std::string(nearest) + "'?");
  }
}

}  // namespace softneuro
