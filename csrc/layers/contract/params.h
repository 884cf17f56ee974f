// A routine's params by name. Descriptors, plans and databases have them as a list of integers, `Tuning`.
#pragma once

#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "layers/contract/routine.h"

namespace softneuro {

// SN_PARAMS(DirectParams, panel, rows) is a struct of the ints `panel` and `rows`, made from a Tuning by of() and
// turned into one by itself.
#define SN_PARAMS(Params, ...)                                                       \
  struct Params {                                                                    \
    int __VA_ARGS__;                                                                 \
    auto all() { return std::tie(__VA_ARGS__); }                                     \
    static std::vector<std::string> names() { return param_names_of(#__VA_ARGS__); } \
    /* Throws Error if there are more or fewer values than params. */                \
    static Params of(const Tuning& tuning) {                                         \
      Params params{};                                                               \
      set_params(tuning, #__VA_ARGS__, params.all());                                \
      return params;                                                                 \
    }                                                                                \
    operator Tuning() const { return {__VA_ARGS__}; }                                \
    friend bool operator==(const Params&, const Params&) = default;                  \
  }

// Splits a list with commas.
std::vector<std::string> param_names_of(std::string_view list);
// Throws Error unless there is a value for each of `count` params.
void check_param_count(const Tuning& tuning, size_t count, std::string_view list);

template <typename... Ints>
void set_params(const Tuning& tuning, std::string_view list, std::tuple<Ints&...> params) {
  check_param_count(tuning, sizeof...(Ints), list);
  auto value = tuning.begin();
  std::apply([&](Ints&... param) { ((param = *value++), ...); }, params);
}

// A param that is 0 or 1. Throws Error.
bool parse_flag(std::string_view name, int value);
// A param that is at least 1. Throws Error.
int parse_positive(std::string_view name, int value);
// Throws Error unless it is in [least, most].
int parse_within(std::string_view name, int value, int least, int most);

}  // namespace softneuro
