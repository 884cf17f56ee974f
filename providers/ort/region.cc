#include "providers/ort/region.h"

#include <algorithm>
#include <atomic>
#include <cmath>

#include "base/log.h"
#include "base/text.h"
#include "graph/passes/passes.h"
#include "providers/ort/judge.h"
#include "tune/cost_keys.h"
#include "tune/near_shapes.h"
#include "tune/plan_graph.h"

namespace softneuro::ort {
namespace {

constexpr size_t nets_per_region = 32, shapes_per_region = 256;
constexpr int64_t most_sizes = 256;  // in one input that holds sizes

// Packings may be shared between graphs that differ in blob shapes only.
std::string structure(const Graph& graph) {
  std::string text;
  for (const Layer& layer : graph.layers()) {
    text += layer.type + "{" + layer.attrs.str() + "}" + layer.post.str();
    for (const auto& [role, value] : layer.weights) text += role + value->shape().str();
    for (const int input : layer.inputs) text += " " + std::to_string(input);
    text += "\n";
  }
  return content_hash(text);
}

// A saved region that cannot be what was saved, and that the host must not run either.
struct NotAsSaved : Error {
  using Error::Error;
};

}  // namespace

Region::Region(OpGraph ops, RegionSettings settings) : ops_(std::move(ops)), settings_(std::move(settings)) {
  static std::atomic<uint64_t> count{0};
  key_ = "onnxruntime " + std::to_string(++count);
}

Region::~Region() { RegionTable::global().drop(key_); }

std::string Region::name() const { return ops_.outputs.empty() ? key_ : ops_.value(ops_.outputs[0]).name; }

const HostRegion& Region::host() {
  const std::lock_guard lock(host_mutex_);
  if (!host_) host_ = std::make_unique<HostRegion>(ops_, HostRegion::Settings{.threads = settings_.threads});
  return *host_;
}

Region::Signature Region::signature(std::span<const RunInput> inputs) const {
  Signature signature;
  signature.reserve(inputs.size() * 5);
  for (size_t i = 0; i < inputs.size(); ++i) {
    const RunInput& input = inputs[i];
    signature.push_back(static_cast<int64_t>(input.dims.size()));
    signature.insert(signature.end(), input.dims.begin(), input.dims.end());
    if (!is_sized(i)) continue;
    const HostTensor sizes{input.type,
                           {input.dims.begin(), input.dims.end()},
                           std::shared_ptr<const void>(input.data, [](const void*) {})};
    if (sizes.elements() > most_sizes) throw Error("an input of sizes has " + std::to_string(sizes.elements()));
    const auto values = sizes.integers();
    signature.insert(signature.end(), values.begin(), values.end());
  }
  return signature;
}

Region::Entry Region::entry(std::span<const RunInput> inputs) {
  const Signature key = signature(inputs);
  if (Entry found = RegionTable::global().find(key_, key, {})) return found;
  const std::lock_guard lock(mutex_);
  if (Entry found = RegionTable::global().find(key_, key, {})) return found;
  return prepare(key, inputs);
}

std::vector<RunInput> Region::declared_inputs() const {
  std::vector<RunInput> inputs;
  for (const int id : ops_.inputs) {
    const OpValue& value = ops_.value(id);
    if (value.sized || !value.has_shape) return {};
    if (std::any_of(value.dims.begin(), value.dims.end(), [](int64_t dim) { return dim < 0; })) return {};
    inputs.push_back({value.type.known(), value.dims, nullptr});
  }
  return inputs;
}

void Region::prepare_declared() {
  const auto inputs = declared_inputs();
  if (inputs.empty()) return;
  const std::lock_guard lock(mutex_);
  prepare(signature(inputs), inputs);
  // What the net has not taken is for other shapes, if for anything.
  restored_.clear();
  for (auto& [_, cache] : caches_) cache->adopt({});
}

SavedRegion Region::saved() const {
  const std::lock_guard lock(mutex_);
  SavedRegion saved;
  saved.ops = ops_;
  saved.device = device_identity();
  saved.threads = settings_.threads;
  for (const auto& [signature, shaped] : shaped_) saved.shapes.push_back({signature, shaped.plan, shaped.host});
  for (const auto& [_, cache] : caches_) {
    for (PackedCache::Item& item : cache->items()) saved.packings.push_back(std::move(item));
  }
  return saved;
}

void Region::restore(SavedRegion saved) {
  is_saved_ = true;
  std::string other;
  if (saved.device != device_identity()) other = "for another device or by another version";
  if (saved.threads != settings_.threads) {
    other =
        "for " + std::to_string(saved.threads) + " thread(s), this session has " + std::to_string(settings_.threads);
  }
  if (!other.empty()) {
    const std::string text = "region '" + name() + "' was made " + other;
    if (settings_.options.strict) throw Error(text, {}, "make the model anew, or give strict=0 to tune it here");
    return log_warning(text + ": it is tuned anew");
  }
  const std::lock_guard lock(mutex_);
  for (SavedShape& shape : saved.shapes) shaped_[shape.signature] = {std::move(shape.plan), std::move(shape.host)};
  restored_ = std::move(saved.packings);
}

std::string Region::declared_verdict() {
  std::vector<RunInput> inputs = declared_inputs();
  if (!judges() || inputs.empty()) return {};
  try {
    Lowered lowered = lower(inputs);
    Verdict verdict = recall(lowered.graph);
    if (!verdict.known && settings_.options.tune == TuneMode::profile) {
      const Ready ready{lowered.inputs, lowered.outputs, {}};
      const TuneResult chosen = plan(signature(inputs), lowered.graph);
      const auto net = Net::prepare(lowered.graph, chosen.assignment, settings_.threads, *cache(lowered));
      std::vector<HostTensor> memory;
      for (RunInput& input : inputs) {
        input.data = memory.emplace_back(made_up(input.type, {input.dims.begin(), input.dims.end()})).data.get();
      }
      verdict = measure(lowered.graph, *net, ready, inputs);
    }
    if (!verdict.known || verdict.wins) return {};
    report(inputs, verdict.reason, &lowered.graph, nullptr, verdict);
    return verdict.reason;
  } catch (const PlanFileError&) {
    throw;
  } catch (const std::exception& error) {
    log_warning("region '" + name() + "' stays with the host: " + error.what());
    return error.what();
  }
}

Region::Entry Region::prepare(const Signature& signature, std::span<const RunInput> inputs) {
  auto ready = std::make_shared<Ready>();
  RegionEntry made;
  made.signature = signature;
  Shaped shaped;
  if (const auto known = shaped_.find(signature); known != shaped_.end()) shaped = known->second;
  for (const RunInput& input : inputs) {
    if (std::find(input.dims.begin(), input.dims.end(), 0) != input.dims.end())
      shaped.host = "it is on an empty tensor";
  }
  if (shaped.host.empty()) {
    try {
      make_net(made, *ready, shaped, inputs);
    } catch (const PlanFileError&) {
      throw;
    } catch (const NotAsSaved&) {
      throw;
    } catch (const std::exception& error) {
      shaped.host = error.what();
      log_warning("region '" + name() + "': the host runs it for inputs " + shapes_text(inputs) + ": " + shaped.host);
      report(inputs, shaped.host);
    }
  }
  ready->host = shaped.host;
  if (shaped_.size() >= shapes_per_region && !shaped_.contains(signature)) shaped_.erase(shaped_.begin());
  shaped_[signature] = std::move(shaped);
  made.door = ready;
  auto entry = std::make_shared<const RegionEntry>(made);
  RegionTable::global().put(key_, std::move(made), nets_per_region);
  return entry;
}

Lowered Region::lower(std::span<const RunInput> inputs) const {
  std::vector<GivenInput> given;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const RunInput& input = inputs[i];
    GivenInput& one = given.emplace_back();
    one.shape = Shape(input.dims);
    if (is_sized(i)) {
      one.known = copied(input.type, {input.dims.begin(), input.dims.end()}, input.data);
    }
  }
  const bool declared = inputs.empty() || inputs[0].data == nullptr;
  try {
    Lowered lowered = Lowering(ops_, settings_.threads).run(given);
    optimize(lowered.graph);
    return lowered;
  } catch (const Error& error) {
    if (!is_saved_ || !declared) throw;
    throw NotAsSaved(std::string("the saved region is damaged: ") + error.what(), {}, "make the model anew");
  }
}

void Region::make_net(RegionEntry& entry, Ready& ready, Shaped& shaped, std::span<const RunInput> inputs) {
  const Lowered lowered = lower(inputs);
  ready.inputs = lowered.inputs;
  ready.outputs = lowered.outputs;
  // Its net was dropped to make room, or the region comes from a compiled model.
  const bool again = shaped.plan.key == plan_key(lowered.graph, settings_.threads);
  Verdict verdict = judges() && !again ? recall(lowered.graph) : Verdict();
  if (verdict.known && !verdict.wins) {
    shaped.host = verdict.reason;
    return report(inputs, shaped.host, &lowered.graph, nullptr, verdict);
  }
  const TuneResult chosen = again ? from_plan(lowered.graph, shaped.plan) : plan(entry.signature, lowered.graph);
  if (!again) shaped.plan = to_plan(lowered.graph, chosen, settings_.threads);
  entry.net = Net::prepare(lowered.graph, chosen.assignment, settings_.threads, *cache(lowered));
  const bool has_data = std::all_of(inputs.begin(), inputs.end(), [](const RunInput& i) { return i.data != nullptr; });
  if (judges() && !again && !verdict.known && has_data && settings_.options.tune == TuneMode::profile) {
    verdict = measure(lowered.graph, *entry.net, ready, inputs);
  }
  if (!verdict.wins) {
    shaped.host = verdict.reason;
    entry.net = nullptr;
    log_info("region '" + name() + "': the host runs it for inputs " + shapes_text(inputs) + ": " + shaped.host);
  }
  report(inputs, shaped.host, &lowered.graph, &chosen, verdict);
}

// Another shape's plan is carried over instead of tuning anew, if the graph is the same but for its shapes.
TuneResult Region::plan(const Signature& signature, const Graph& graph) {
  const Options& options = settings_.options;
  if (const Shaped* near = nearest(signature, graph.layers().size())) {
    return carry_over(graph, descriptors(near->plan), tune_settings(options, settings_.threads));
  }
  TuneResult made = make_plan(graph, options, settings_.threads, shared_cost_db(), own_pool(settings_.threads),
                              [this](int done, int total) {
                                if (settings_.report) settings_.report->progress(done, total);
                              });
  log_info("region '" + name() + "': planned " + std::to_string(made.layers.size()) + " layers in " +
           std::to_string(made.tuning_s) + " s: " + std::to_string(1e3 * made.predicted_s) + " ms predicted");
  return made;
}

const Region::Shaped* Region::nearest(const Signature& signature, size_t layers) const {
  std::vector<const Shaped*> shaped;
  std::vector<Sizes> known;
  for (const auto& [other, one] : shaped_) {
    if (one.plan.steps.size() != layers || layers == 0) continue;
    shaped.push_back(&one);
    known.push_back(other);
  }
  const auto nearest = nearest_shapes(signature, known);
  return nearest ? shaped[*nearest] : nullptr;
}

bool Region::judges() const { return settings_.options.never_worse && settings_.options.tune != TuneMode::off; }

// Equal graphs may be made of ops of other types: the host's time and error are then others.
std::string Region::verdict_key(const Graph& graph) const {
  std::string types;
  for (const OpValue& value : ops_.values) types += std::to_string(value.type.number()) + " ";
  return "region " + graph.structural_hash() + " " + content_hash(types) + " onnxruntime " + Runtime::get().version() +
         " " + format_options(settings_.options).at("schemas") + " " +
         format_options(settings_.options).at("max_error");
}

Verdict Region::recall(const Graph& graph) const {
  const auto known = Ledger(shared_cost_db(), settings_.threads).find_verdict(verdict_key(graph));
  if (!known) return {};
  return judged({true, known->won, known->seconds, known->host_seconds, known->error, {}}, settings_.options.max_error);
}

Verdict Region::measure(const Graph& graph, const Net& net, const Ready& ready,
                        std::span<const RunInput> inputs) const {
  const bool halves = has_halves(ops_);
  std::vector<ValueOwner> truth;
  if (halves) truth = exact_results(ops_, inputs, settings_.threads);
  std::optional<HostRegion> host;
  try {
    host.emplace(ops_, HostRegion::Settings{.threads = settings_.threads, .spin = true});
  } catch (const NotImplemented& error) {
    if (!halves) throw;
    // The CPU provider has no kernels for bfloat16: there is nothing to be worse than.
    log_info("region '" + name() + "' is not compared with the host: " + error.what());
    return {};
  }
  const Verdict found = compare(net, ready, *host, ops_, inputs, truth, settings_.threads, settings_.options.max_error);
  if (std::isfinite(found.error)) {
    Ledger(shared_cost_db(), settings_.threads)
        .add_verdict(verdict_key(graph), {found.wins, found.seconds, found.host_seconds, found.error});
  }
  return found;
}

std::shared_ptr<PackedCache> Region::cache(const Lowered& lowered) {
  if (lowered.weights_from_shapes) return std::make_shared<PackedCache>();
  auto& cache = caches_[structure(lowered.graph)];
  if (!cache) {
    cache = std::make_shared<PackedCache>();
    cache->adopt(restored_);
  }
  return cache;
}

}  // namespace softneuro::ort
