#include "tune/calibrate/calibrated.h"

#include <algorithm>
#include <filesystem>
#include <mutex>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/fork_mutex.h"
#include "base/log.h"
#include "base/text.h"
#include "tune/calibrate/calibrator.h"
#include "tune/plan/planner.h"
#include "tune/records/record_text.h"

namespace softneuro {
namespace {

constexpr std::string_view online = "online:", collect = "collect:";
constexpr int64_t most_batches = 1'000'000;

// Files as they were read last: doors ask for every graph and shape.
class KnownFiles {
 public:
  std::shared_ptr<const RangeTable> get(const std::string& path) {
    namespace fs = std::filesystem;
    std::error_code none;
    const auto time = fs::last_write_time(path, none);
    const std::unique_lock lock(mutex_);
    if (none) {  // a program goes on with what it has read
      const auto known = items_.find(path);
      return known != items_.end() ? known->second.table : nullptr;
    }
    Item& item = items_[path];
    if (item.table == nullptr || item.time != time)
      item = {time, std::make_shared<const RangeTable>(load_ranges(path))};
    return item.table;
  }
  // Whether it is the first time.
  bool tells(const std::string& what) {
    const std::unique_lock lock(mutex_);
    return told_.insert(what).second;
  }

 private:
  struct Item {
    std::filesystem::file_time_type time;
    std::shared_ptr<const RangeTable> table;
  };
  ForkMutex mutex_;
  std::map<std::string, Item> items_;
  std::set<std::string> told_;
};

KnownFiles& known_files() {
  static auto* files = new KnownFiles;
  return *files;
}

// Null where calls are to be observed for the file first. Throws PlanFileError.
std::shared_ptr<const RangeTable> read_table(const CalibrationSource& source) {
  std::shared_ptr<const RangeTable> table;
  try {
    table = known_files().get(source.path);
  } catch (const Error& error) {
    if (source.batches == 0) throw PlanFileError(error.what());
    if (known_files().tells("unread " + source.path)) log_warning(std::string("calibration: ") + error.what());
    return nullptr;
  }
  if (table != nullptr || source.batches > 0) return table;
  throw PlanFileError("there is no file of ranges at this path", source.path, "make it by calibrate()");
}

const RangeSection* section_for(const RangeTable& table, const RangeKey& key, bool any_weights, bool& stale) {
  if (const RangeSection* section = table.find(key)) return section;
  if (!any_weights) return nullptr;
  for (const RangeSection& section : table.sections()) {
    if (section.key.structure != key.structure) continue;
    stale = true;
    return &section;
  }
  return nullptr;
}

}  // namespace

namespace {

// Whether a layer's attributes may be others for inputs of another size.
bool follows_shapes(const Graph& graph, const Layer& layer) {
  constexpr std::string_view sized[] = {"constant", "reshape", "slice", "upsample", "pad"};
  if (std::find(std::begin(sized), std::end(sized), layer.type) != std::end(sized)) return true;
  if (layer.type != "pool2d") return false;
  const auto kernel = layer.attrs.integers("kernel");
  const Shape& image = graph.blob(layer.inputs[0]).desc.shape;
  return kernel.size() == 2 && kernel[0] == image[2] && kernel[1] == image[3];  // all of it
}

std::string key_of(const Graph& graph, bool all_attributes) {
  std::string text;
  for (const Layer& layer : graph.layers()) {
    text += layer.type + " ";
    const bool has_weights = !layer.weights.empty() && layer.type != "constant";
    if (has_weights || (all_attributes && !follows_shapes(graph, layer))) text += layer.attrs.str();
    for (const auto& [role, value] : layer.weights) {
      text += " " + role + std::string(dtype_name(value->dtype()));
      if (layer.type != "constant") text += value->shape().str();
    }
    text += layer.post.str();
    for (const int input : layer.inputs) text += " " + std::to_string(input);
    text += "\n";
  }
  for (const Schema& schema : graph.input_schemas()) text += schema.str() + "\n";
  for (const Schema& schema : graph.output_schemas()) text += schema.str() + "\n";
  for (const int output : graph.outputs()) text += std::to_string(output) + "\n";
  return content_hash(text);
}

}  // namespace

std::string model_key(const Graph& graph) { return key_of(graph, false); }

std::string range_key(const Graph& graph) { return key_of(graph, true); }

CalibrationSource parse_calibration(const std::string& text) {
  CalibrationSource source;
  if (text.find('\0') != std::string::npos) throw Error("the path has a zero byte", "option calibration");
  if (text.starts_with(collect)) {
    source = {.path = text.substr(collect.size()), .collects = true};
    if (source.path.empty()) throw Error("collect: wants a path", "option calibration");
  } else if (text.starts_with(online)) {
    const auto batches = parse_integer(text.substr(online.size()));
    if (!batches || *batches < 1 || *batches > most_batches) {
      throw Error("'" + text + "' does not say how many calls are to be observed", "option calibration",
                  "give online:N with N from 1 to " + std::to_string(most_batches));
    }
    source.batches = *batches;
    const std::string directory = CostDb::default_directory();
    if (!directory.empty()) source.path = directory + "/ranges.txt";
  } else {
    source.path = text;
  }
  return source;
}

std::shared_ptr<const Calibration> calibration_of(const Graph& graph, const Options& options) {
  const CalibrationSource source = parse_calibration(options.calibration);
  if (source.path.empty() || source.collects) return nullptr;
  const auto table = read_table(source);
  if (table == nullptr) return nullptr;
  bool stale = false;
  // What is observed online is for the weights at hand.
  const bool compared = options.never_worse && options.tune == TuneMode::profile && source.batches == 0;
  const RangeKey key{range_key(graph), graph.weights_identity()};
  const RangeSection* section = section_for(*table, key, compared, stale);
  if (section == nullptr) {
    const bool fresh = known_files().tells(source.path + key.structure + key.weights);
    if (fresh && source.batches == 0) {
      log_warning("calibration: " + source.path + " has no ranges of a graph of " +
                  std::to_string(graph.layers().size()) + " layers with these weights: it stays in floats");
    }
    return nullptr;
  }
  if (stale && known_files().tells("stale " + source.path + key.structure + key.weights)) {
    log_warning("calibration: the ranges of " + source.path +
                " are stale: they were observed with other weights; calibrate again");
  }
  auto calibration = std::make_shared<Calibration>();
  calibration->stale = stale;
  calibration->grids = grids_of(graph, *section, !stale);
  calibration->blob_errors.assign(graph.blobs().size(), unknown_error);
  calibration->layer_errors.resize(graph.layers().size());
  for (const BlobRange& row : section->blobs) {
    if (row.error && row.blob < static_cast<int>(graph.blobs().size()))
      calibration->blob_errors[static_cast<size_t>(row.blob)] = *row.error;
  }
  for (const LayerError& row : section->layers) {
    if (row.error && row.layer < static_cast<int>(graph.layers().size()))
      calibration->layer_errors[static_cast<size_t>(row.layer)][row.form] = *row.error;
  }
  return calibration;
}

}  // namespace softneuro
