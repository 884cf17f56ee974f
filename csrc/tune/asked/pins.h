// The options `keep` and `fixed`: what users ask of single layers, by their names.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "layers/contract/registry.h"

namespace softneuro {

// Nothing that is asked for is to be had: the caller's to mend, and no reason to leave a region to the host.
class PinError : public Error {
 public:
  using Error::Error;
};

// Layers of these names read and write reals in this form alone.
struct Keep {
  std::string pattern;
  std::string form;  // a dtype, or a full schema

  bool allows(const Schema& schema) const;
};

// Layers of these names run this routine: where no params are given, with any.
struct Fixed {
  std::string pattern;
  const Routine* routine = nullptr;
  std::optional<Tuning> tuning = {};

  const std::string& type() const { return routine->info().layer_type; }
  bool is(const RoutineChoice& choice) const {
    return choice.routine == routine && (!tuning || choice.tuning == *tuning);
  }
  std::string descriptor() const { return routine->descriptor(tuning.value_or(Tuning())); }
};

struct Pins {
  std::vector<Keep> keep;
  std::vector<Fixed> fixed;
  bool empty() const { return keep.empty() && fixed.empty(); }
};

// `*` stands for any characters, `?` for one.
bool is_pattern(std::string_view text);
bool matches(std::string_view pattern, std::string_view name);

// `pattern:form`, separated by commas. Throws Error.
std::vector<Keep> parse_keep(std::string_view text);
std::string format_keep(const std::vector<Keep>& keep);
// `pattern=descriptor`, separated by commas or semicolons; a descriptor may contain commas itself. Throws Error, naming
// the nearest routine where there is none of that name.
std::vector<Fixed> parse_fixed(std::string_view text);
std::string format_fixed(const std::vector<Fixed>& fixed);

// Without those that a float model's layer meets in rounded forms alone (graph/forms.h).
Pins in_floats(Pins pins);

}  // namespace softneuro
