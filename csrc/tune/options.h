// The options of every front door, one table.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tune/asked/memory_limit.h"
#include "tune/asked/pins.h"

namespace softneuro {

enum class TuneMode : unsigned char { profile, cached, off };
enum class HostMode : unsigned char { eager, inductor };

struct Options {
  std::vector<std::string> schemas{"float32"};  // dtypes or full schemas
  double max_error = 1e-4;
  int threads = 0;
  TuneMode tune = TuneMode::profile;
  double time_budget_s = 10;
  HostMode host = HostMode::eager;
  std::string plan;
  std::string calibration, calibration_method{"percentile:99.99"};
  int min_region_size = 2;
  bool never_worse = true;
  bool shortcuts = true;
  bool strict_nonfinite = false;
  bool flush_denormals = false;
  MemoryLimit max_memory;
  Pins pins;  // keep and fixed
  int verbose = 0;
  bool strict = false;
};

struct OptionInfo {
  std::string_view name, type, default_value, range, help;
};

std::span<const OptionInfo> option_table();
// From texts: comma lists, 0/1 (or true/false) for bools, plain numbers. What is absent has its default. Throws Error
// for an unknown name, with the nearest known one, and for a value outside the range, naming the range.
Options parse_options(const std::map<std::string, std::string>& values);
// All options as texts that parse_options() reads back.
std::map<std::string, std::string> format_options(const Options& options);

}  // namespace softneuro
