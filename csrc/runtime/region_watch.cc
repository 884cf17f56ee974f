#include "runtime/region_watch.h"

#include <mutex>
#include <optional>

#include "base/log.h"
#include "layers/host/host.h"

namespace softneuro {
namespace {

constexpr double errors_share = 2;   // of the time budget of tuning
constexpr size_t most_watched = 64;  // signatures

}  // namespace

Region::Region(RegionSettings settings) : settings_(std::move(settings)) {
  all_options_.push_back(settings_.options);
  options_ = &all_options_.back();
  outside_ = std::make_shared<OutsideCounts>(settings_.name, settings_.outside);
  start_watching();
}

void Region::start_watching() {
  watches_ = false;
  watching_ = nullptr;
  const CalibrationSource source = parse_calibration(options().calibration);
  if (!source.collects && source.batches == 0) return;
  if (source.path.empty()) {
    log_warning("calibration: there is no directory for ranges: set SOFTNEURO_CACHE_DIR, or name a file");
    return;
  }
  watching_ = std::make_unique<Watching>(source);
  watches_ = true;
}

Region::~Region() = default;

// Lowers the call once for each signature and set of weights.
void Region::watch_shape(const Signature& signature, const WeightSet& weights, RegionCall& call) {
  Watching& watching = *watching_;
  auto& shaped = watching.shapes[{signature, weights.identity}];
  if (shaped.ready.net != nullptr && shaped.ready.weights.epoch == weights.epoch) return;
  LoweredCall lowered = call.lower();
  const std::string identity = lowered.graph.weights_identity();
  const bool known = !watching.source.collects && calibration_of(lowered.graph, options()) != nullptr;
  Watching::Model& model = watching.models[range_key(lowered.graph)];
  if (known && model.calibrator == nullptr) {
    watches_ = false;
    return;
  }
  if (model.calibrator != nullptr && model.weights != identity) {
    log_warning("region '" + settings_.name + "': weights have changed while it was calibrated: it begins anew");
    model.calibrator = nullptr;
    watching.shapes.clear();
  }
  if (model.calibrator == nullptr) {
    Options floats = options();
    floats.calibration.clear();
    model.weights = identity;
    model.calibrator =
        std::make_unique<Calibrator>(tune_settings(lowered.graph, floats, call.threads()), shared_cost_db());
  }
  Watching::Shaped made{.model = &model,
                        .ready = {.signature = signature,
                                  .weights = lowered.runs != nullptr ? lowered.runs->made_of() : weights,
                                  .net = model.calibrator->watching(lowered.graph),
                                  .orders = std::move(lowered.orders),
                                  .door = std::move(lowered.door),
                                  .runs = std::move(lowered.runs)}};
  watching.shapes[{signature, weights.identity}] = std::move(made);
}

std::optional<Region::Side> Region::watch(const Signature& signature, const WeightSet& weights, RegionCall& call) {
  if (!call.has_values() || !call.declined().empty()) return {};
  std::unique_lock lock(watching_mutex_, std::defer_lock);
  if (!lock.try_lock()) {
    // Another call is observed, or errors are measured. What is to be collected waits for its turn.
    if (!parse_calibration(options().calibration).collects && has_host_) {
      try {
        call.run_host();
        return Side::host;
      } catch (const NoHost&) {  // then it waits, too
      }
    }
    lock.lock();
  }
  if (!watches_) return {};
  Watching& watching = *watching_;
  try {
    if (watching.shapes.size() >= most_watched) watching.shapes.clear();
    watch_shape(signature, weights, call);
    if (!watches_) return {};
    const Watching::Shaped& shaped = watching.shapes.at({signature, weights.identity});
    call.run_net(shaped.ready);
    shaped.model->calibrator->end_batch();
  } catch (const CallersError&) {
    throw;
  } catch (const Error& error) {
    watches_ = false;
    log_warning("region '" + settings_.name + "': it cannot be calibrated: " + error.what());
    return {};
  }
  int64_t batches = 0;
  for (const auto& [key, model] : watching.models) {
    if (model.calibrator != nullptr) batches += model.calibrator->batches();
  }
  if (watching.source.collects || batches < watching.source.batches) return Side::net;
  try {
    finish_watching([&](int done, int total) { call.progress(done, total); });
  } catch (const Error& error) {
    log_warning("region '" + settings_.name + "': its calibration is lost: " + error.what());
  }
  return Side::net;
}

// Whether nothing is to be decided yet: ranges are still to be observed.
bool Region::waits_for_calls(RegionCall& call) {
  const std::unique_lock lock(watching_mutex_);
  if (!watches_ || !call.declined().empty()) return false;
  if (watching_->source.collects) return true;
  try {
    if (calibration_of(call.lower().graph, options()) == nullptr) return true;
  } catch (const CallersError&) {
    throw;
  } catch (const PlanFileError&) {
    throw;
  } catch (const Error&) {  // what prepares it tells
  }
  watches_ = false;
  return false;
}

void Region::finish_watching(const Progress& progress) {
  Watching& watching = *watching_;
  // Until the end calls run elsewhere, as plans that were made meanwhile would know of no ranges.
  struct Ending {
    std::atomic<bool>& watches;
    ~Ending() { watches = false; }
  } const ending{watches_};
  RangeTable table;
  const FitSettings method = FitSettings::parse(options().calibration_method);
  for (auto& [key, model] : watching.models) {
    if (model.calibrator == nullptr || model.calibrator->batches() == 0) continue;
    const double seconds = errors_share * options().time_budget_s;
    const int threads = model.calibrator->threads();
    table.set(model.calibrator->finish(method, seconds, own_pool(threads), progress));
  }
  watching.shapes.clear();
  watching.models.clear();
  if (!table.sections().empty()) save_ranges(table, watching.source.path);
}

void Region::reconfigure(Options options) {
  const std::scoped_lock lock(watching_mutex_, preparing_);
  {
    const std::unique_lock state(mutex_);
    all_options_.push_back(std::move(options));
    options_.store(&all_options_.back(), std::memory_order_release);
    ++generation_;
    by_signature_.clear();
    items_.clear();
    source_.clear();
    attempts_ = 0;
    outside_ = std::make_shared<OutsideCounts>(settings_.name, settings_.outside);
  }
  start_watching();
  clear();
}

int64_t Region::finish_calibration(const Progress& progress) {
  const std::unique_lock lock(watching_mutex_);
  if (!watches_) return 0;
  int64_t batches = 0;
  for (const auto& [key, model] : watching_->models) {
    if (model.calibrator != nullptr) batches += model.calibrator->batches();
  }
  finish_watching(progress);
  return batches;
}

}  // namespace softneuro
