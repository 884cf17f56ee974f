// A layer's params as the doors give them: names with integer, real, text or integer-list values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace softneuro {

using AttrValue = std::variant<int64_t, double, std::string, std::vector<int64_t>>;

// Kept sorted by name, so that str() is canonical. The typed getters throw Error naming the attribute, its value and
// the type wanted; an integer is accepted where a real is wanted. Those with a fallback return it when the name is
// absent.
class Attrs {
 public:
  void set(std::string_view name, AttrValue value);
  void erase(std::string_view name);
  const AttrValue* find(std::string_view name) const;

  int64_t integer(std::string_view name) const;
  int64_t integer(std::string_view name, int64_t fallback) const;
  double real(std::string_view name) const;
  double real(std::string_view name, double fallback) const;
  const std::string& text(std::string_view name) const;
  std::string text(std::string_view name, std::string_view fallback) const;
  const std::vector<int64_t>& integers(std::string_view name) const;
  std::vector<int64_t> integers(std::string_view name, std::vector<int64_t> fallback) const;
  bool flag(std::string_view name, bool fallback) const { return integer(name, fallback ? 1 : 0) != 0; }

  const std::vector<std::pair<std::string, AttrValue>>& items() const { return items_; }
  // "dilation=[1,1],groups=1": exact (reals in shortest round-trip form), for signatures and hashes.
  std::string str() const;
  // Throws Error naming the first attribute that is not in `known` and the nearest that is.
  void expect_only(std::initializer_list<std::string_view> known) const;

 private:
  std::vector<std::pair<std::string, AttrValue>> items_;
};

}  // namespace softneuro
