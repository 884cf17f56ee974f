#include "tune/options.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/schema.h"
#include "base/text.h"
#include "tune/calibrate/calibrated.h"
#include "tune/calibrate/fit.h"
#include "tune/records/record_text.h"

namespace softneuro {
namespace {

constexpr std::string_view tune_names[] = {"profile", "cached", "off"};
constexpr std::string_view host_names[] = {"eager", "inductor"};

// Each setter says whether the text is within the range.
using Set = bool (*)(Options&, const std::string&);
using Get = std::string (*)(const Options&);
struct Access {
  Set set;
  Get get;
};

template <auto member>
bool set_int(Options& options, const std::string& text, int64_t least, int64_t most) {
  const auto value = parse_integer(text);
  if (!value || *value < least || *value > most) return false;
  options.*member = static_cast<int>(*value);
  return true;
}

template <auto member>
bool set_positive(Options& options, const std::string& text) {
  const auto value = parse_double(text);
  if (!value || !std::isfinite(*value) || *value <= 0) return false;
  options.*member = *value;
  return true;
}

template <auto member>
bool set_flag(Options& options, const std::string& text) {
  const bool yes = text == "1" || text == "true" || text == "True";
  if (!yes && text != "0" && text != "false" && text != "False") return false;
  options.*member = yes;
  return true;
}

template <auto member, typename Enum>
bool set_choice(Options& options, const std::string& text, std::span<const std::string_view> names) {
  const auto it = std::find(names.begin(), names.end(), text);
  if (it == names.end()) return false;
  options.*member = static_cast<Enum>(it - names.begin());
  return true;
}

template <auto member>
std::string get_number(const Options& options) {
  return exact_number(static_cast<double>(options.*member));
}

bool set_schemas(Options& options, const std::string& text) {
  std::vector<std::string> schemas;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    std::string item = text.substr(begin, end - begin);
    item.erase(0, std::min(item.find_first_not_of(' '), item.size()));
    item.erase(item.find_last_not_of(' ') + 1);
    if (item.find(':') == std::string::npos) {
      parse_dtype(item);
    } else {
      parse_schema(item);
    }
    if (std::find(schemas.begin(), schemas.end(), item) == schemas.end()) schemas.push_back(std::move(item));
    begin = end + 1;
  }
  options.schemas = std::move(schemas);
  return true;
}

std::string get_schemas(const Options& options) {
  std::string text;
  for (const std::string& schema : options.schemas) text += (text.empty() ? "" : ",") + schema;
  return text;
}

constexpr OptionInfo table[] = {
    {"schemas", "list", "float32", "comma list of dtypes (float32) or schemas (cpu:float32:nchw16c)",
     "Element types and layouts that routines may use for reals."},
    {"max_error", "float", "0.0001", "> 0", "Relative L2 error allowed per output of a compiled graph."},
    {"threads", "int", "0", "0 to 4096", "Threads that kernels use at once; 0: as many as the host."},
    {"tune", "choice", "profile", "profile, cached or off",
     "Measure routines that the cost database does not know, use only what it knows, or go by rules alone."},
    {"time_budget_s", "float", "10", "> 0", "Seconds that tuning one graph may take."},
    {"host", "choice", "eager", "eager or inductor", "What runs the parts that stay with PyTorch."},
    {"plan", "path", "", "a path, or empty for none", "Plan file: loaded if it exists, saved otherwise."},
    {"calibration", "path", "", "a path, online:N, or empty for none",
     "Ranges of the model's blobs on real data, with which max_error may be spent on bytes: a file that calibrate() "
     "has "
     "written, or the first N calls."},
    {"calibration_method", "choice", "percentile:99.99", "min_max, moving_average, percentile:P, mse, entropy or best",
     "How ranges follow from the values that are observed."},
    {"min_region_size", "int", "2", "1 to 1000000", "Smallest number of operations worth taking from the host."},
    {"never_worse", "bool", "1", "0 or 1", "Leave a region with the host if it does not beat the host's own time."},
    {"shortcuts", "bool", "1", "0 or 1",
     "Take short cuts around torch's own way to a net; 0: guards, weights and calls are as torch has them."},
    {"strict_nonfinite", "bool", "0", "0 or 1",
     "Exclude routines that may spread NaN or Inf to outputs that do not depend on them."},
    {"flush_denormals", "bool", "0", "0 or 1",
     "Take numbers below 1.2e-38 for zero inside of regions, and nowhere else: on many CPUs they are slow."},
    {"max_memory", "memory", "auto", "a multiple of the weights (1.5, 1.5x), bytes (120MiB, 64KiB, 500MB, 9B) or auto",
     "Most memory of a run beside the model's own weights; auto: packed weights take at most 4 times the model's."},
    {"keep", "list", "", "comma list of pattern:dtype or pattern:schema (head*:float32, *.fc:cpu:float32:nchw)",
     "Layers whose names match (*, ?) read and write reals in that form alone."},
    {"fixed", "list", "", "list of pattern=descriptor, separated by , or ; (conv1=conv2d/cpu:float32:nchw/naive)",
     "Layers whose names match (*, ?) run that routine."},
    {"verbose", "int", "0", "0 to 3", "How much is logged: 0 warnings, 1 results, 2 progress, 3 every candidate."},
    {"strict", "bool", "0", "0 or 1",
     "Refuse a saved model of another device, version or thread count instead of tuning it anew with a warning."},
};

constexpr Access accesses[] = {
    {set_schemas, get_schemas},
    {set_positive<&Options::max_error>, get_number<&Options::max_error>},
    {[](Options& o, const std::string& text) { return set_int<&Options::threads>(o, text, 0, 4096); },
     get_number<&Options::threads>},
    {[](Options& o, const std::string& text) { return set_choice<&Options::tune, TuneMode>(o, text, tune_names); },
     [](const Options& o) { return std::string(tune_names[static_cast<size_t>(o.tune)]); }},
    {set_positive<&Options::time_budget_s>, get_number<&Options::time_budget_s>},
    {[](Options& o, const std::string& text) { return set_choice<&Options::host, HostMode>(o, text, host_names); },
     [](const Options& o) { return std::string(host_names[static_cast<size_t>(o.host)]); }},
    {[](Options& o, const std::string& text) {
       o.plan = text;
       return text.find('\0') == std::string::npos;
     },
     [](const Options& o) { return o.plan; }},
    {[](Options& o, const std::string& text) {
       parse_calibration(text);
       o.calibration = text;
       return true;
     },
     [](const Options& o) { return o.calibration; }},
    {[](Options& o, const std::string& text) {
       o.calibration_method = FitSettings::parse(text).str();
       return true;
     },
     [](const Options& o) { return o.calibration_method; }},
    {[](Options& o, const std::string& text) { return set_int<&Options::min_region_size>(o, text, 1, 1'000'000); },
     get_number<&Options::min_region_size>},
    {set_flag<&Options::never_worse>, get_number<&Options::never_worse>},
    {set_flag<&Options::shortcuts>, get_number<&Options::shortcuts>},
    {set_flag<&Options::strict_nonfinite>, get_number<&Options::strict_nonfinite>},
    {set_flag<&Options::flush_denormals>, get_number<&Options::flush_denormals>},
    {[](Options& o, const std::string& text) {
       const auto limit = parse_memory_limit(text);
       if (limit) o.max_memory = *limit;
       return limit.has_value();
     },
     [](const Options& o) { return o.max_memory.str(); }},
    {[](Options& o, const std::string& text) {
       o.pins.keep = parse_keep(text);
       return true;
     },
     [](const Options& o) { return format_keep(o.pins.keep); }},
    {[](Options& o, const std::string& text) {
       o.pins.fixed = parse_fixed(text);
       return true;
     },
     [](const Options& o) { return format_fixed(o.pins.fixed); }},
    {[](Options& o, const std::string& text) { return set_int<&Options::verbose>(o, text, 0, 3); },
     get_number<&Options::verbose>},
    {set_flag<&Options::strict>, get_number<&Options::strict>},
};
static_assert(std::size(table) == std::size(accesses));

}  // namespace

std::span<const OptionInfo> option_table() { return table; }

Options parse_options(const std::map<std::string, std::string>& values) {
  Options options;
  for (const auto& [name, text] : values) {
    const auto it = std::find_if(std::begin(table), std::end(table), [&](const auto& row) { return row.name == name; });
    if (it == std::end(table)) {
      std::vector<std::string_view> names;
      for (const OptionInfo& row : table) names.push_back(row.name);
      throw Error("there is no option '" + name + "'", "options",
                  "did you mean '" + std::string(nearest_name(name, names)) + "'?");
    }
    const std::string where = "option " + name;
    const std::string range = "give " + std::string(it->range);
    bool valid = false;
    try {
      valid = accesses[it - std::begin(table)].set(options, text);
    } catch (const Error& error) {
      throw Error(error.what(), where, range);
    }
    if (!valid) throw Error("'" + text + "' is not valid", where, range);
  }
  return options;
}

std::map<std::string, std::string> format_options(const Options& options) {
  std::map<std::string, std::string> values;
  for (size_t i = 0; i < std::size(table); ++i) values.emplace(table[i].name, accesses[i].get(options));
  return values;
}

}  // namespace softneuro
