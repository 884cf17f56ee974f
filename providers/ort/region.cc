#include "providers/ort/region.h"

#include <algorithm>
#include <atomic>
#include <cmath>

#include "base/log.h"
#include "base/text.h"
#include "graph/passes/passes.h"
#include "providers/ort/judge.h"
#include "tune/cost_keys.h"

namespace softneuro::ort {
namespace {

constexpr size_t nets_per_region = 32, shapes_per_region = 256;
constexpr int64_t most_sizes = 256;  // in one input that holds sizes

std::string shapes_text(std::span<const RunInput> inputs) {
  std::string text;
  for (const RunInput& input : inputs) text += (text.empty() ? "" : ", ") + Shape(input.dims).str();
  return text;
}

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

}  // namespace

ParallelFor tuning_pool(int threads) {
  static std::mutex mutex;
  static auto* pools = new std::map<int, std::unique_ptr<ThreadPool>>;  // never destroyed: see ThreadPool's workers
  if (threads <= 1) return {};
  const std::lock_guard lock(mutex);
  auto& pool = (*pools)[threads];
  if (!pool) pool = std::make_unique<ThreadPool>(threads);
  return pool->parallel_for();
}

Region::Region(OpGraph ops, RegionSettings settings) : ops_(std::move(ops)), settings_(std::move(settings)) {
  static std::atomic<uint64_t> count{0};
  key_ = "onnxruntime " + std::to_string(++count);
}

Region::~Region() { RegionTable::global().drop(key_); }

std::string Region::name() const { return ops_.outputs.empty() ? key_ : ops_.value(ops_.outputs[0]).name; }

const HostRegion& Region::host() {
  const std::lock_guard lock(host_mutex_);
  if (!host_) host_ = std::make_unique<HostRegion>(ops_, settings_.threads, false);
  return *host_;
}

Region::Signature Region::signature(std::span<const RunInput> inputs) const {
  Signature signature;
  signature.reserve(inputs.size() * 5);
  for (const RunInput& input : inputs) {
    signature.push_back(static_cast<int64_t>(input.dims.size()));
    signature.insert(signature.end(), input.dims.begin(), input.dims.end());
    if (input.type == ElementType::float32) continue;
    // Sizes: their values decide shapes.
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
  return prepare(key, inputs, true);
}

Region::Entry Region::prepare_declared(bool judge) {
  std::vector<RunInput> inputs;
  std::vector<std::vector<float>> memory;
  for (const int id : ops_.inputs) {
    const OpValue& value = ops_.value(id);
    if (value.type != ElementType::float32 || !value.has_shape) return nullptr;
    if (std::any_of(value.dims.begin(), value.dims.end(), [](int64_t dim) { return dim < 0; })) return nullptr;
    inputs.push_back({value.type, value.dims, nullptr});
    if (judge) inputs.back().data = memory.emplace_back(made_up_values(Shape(value.dims).elements())).data();
  }
  const Signature key = signature(inputs);
  const std::lock_guard lock(mutex_);
  return prepare(key, inputs, judge);
}

Region::Entry Region::prepare(const Signature& signature, std::span<const RunInput> inputs, bool judge) {
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
      make_net(made, *ready, shaped, inputs, judge);
    } catch (const PlanFileError&) {
      throw;
    } catch (const std::exception& error) {
      shaped.host = error.what();
      log_warning("region '" + name() + "': the host runs it for inputs " + shapes_text(inputs) + ": " + shaped.host);
      report(made, *ready, nullptr, {false, false, 0, 0, 0, shaped.host}, inputs);
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

void Region::make_net(RegionEntry& entry, Ready& ready, Shaped& shaped, std::span<const RunInput> inputs, bool judge) {
  std::vector<GivenInput> given;
  for (const RunInput& input : inputs) {
    GivenInput& one = given.emplace_back();
    one.shape = Shape(input.dims);
    if (input.type != ElementType::float32) {
      one.known = copied(input.type, {input.dims.begin(), input.dims.end()}, input.data);
    }
  }
  Lowered lowered = Lowering(ops_).run(given);
  optimize(lowered.graph);
  ready.inputs = lowered.inputs;
  ready.outputs = lowered.outputs;
  const TuneResult chosen =
      shaped.descriptors.empty()
          ? plan(entry.signature, lowered.graph)
          : carry_over(lowered.graph, shaped.descriptors, tune_settings(settings_.options, settings_.threads));
  shaped.descriptors = descriptors(chosen);
  entry.net = Net::prepare(lowered.graph, chosen.assignment, settings_.threads, *cache(lowered));
  const Verdict verdict = this->judge(lowered.graph, *entry.net, ready, inputs, judge);
  if (!verdict.wins) {
    shaped.host = verdict.reason;
    entry.net = nullptr;
    log_info("region '" + name() + "': the host runs it for inputs " + shapes_text(inputs) + ": " + shaped.host);
  }
  ready.host = shaped.host;
  report(entry, ready, &chosen, verdict, inputs);
}

// Another shape's plan is carried over instead of tuning anew, if the graph is the same but for its shapes.
TuneResult Region::plan(const Signature& signature, const Graph& graph) {
  const Options& options = settings_.options;
  if (const Shaped* near = nearest(signature, graph.layers().size())) {
    return carry_over(graph, near->descriptors, tune_settings(options, settings_.threads));
  }
  return make_plan(graph, options, settings_.threads, shared_cost_db(), tuning_pool(settings_.threads));
}

const Region::Shaped* Region::nearest(const Signature& signature, size_t layers) const {
  const Shaped* best = nullptr;
  double least = 0;
  for (const auto& [other, shaped] : shaped_) {
    if (shaped.descriptors.size() != layers || other.size() != signature.size() || layers == 0) continue;
    double distance = 0;
    for (size_t i = 0; i < signature.size(); ++i) {
      const auto a = static_cast<double>(signature[i]), b = static_cast<double>(other[i]);
      distance += std::abs(a - b) / std::max({std::abs(a), std::abs(b), 1.0});
    }
    if (best == nullptr || distance < least) best = &shaped, least = distance;
  }
  return best;
}

Verdict Region::judge(const Graph& graph, const Net& net, const Ready& ready, std::span<const RunInput> inputs,
                      bool measure) {
  const Options& options = settings_.options;
  if (!options.never_worse || options.tune == TuneMode::off) return {};
  Ledger ledger(shared_cost_db(), settings_.threads);
  const std::string key = "region " + graph.structural_hash() + " onnxruntime " + Runtime::get().version() + " " +
                          format_options(options).at("schemas") + " " + format_options(options).at("max_error");
  Verdict verdict;
  if (const auto known = ledger.find_verdict(key)) {
    verdict = {true, known->won, known->seconds, known->host_seconds, known->error, {}};
  } else if (measure && options.tune == TuneMode::profile) {
    const HostRegion host(ops_, settings_.threads, true);
    verdict = compare(net, ready, host, ops_, inputs, settings_.threads, options.max_error);
    if (std::isfinite(verdict.error)) {
      ledger.add_verdict(key, {verdict.wins, verdict.seconds, verdict.host_seconds, verdict.error});
    }
  } else {
    return {};
  }
  return judged(verdict, options.max_error);
}

std::shared_ptr<PackedCache> Region::cache(const Lowered& lowered) {
  if (lowered.weights_from_shapes) return std::make_shared<PackedCache>();
  auto& cache = caches_[structure(lowered.graph)];
  if (!cache) cache = std::make_shared<PackedCache>();
  return cache;
}

void Region::report(const RegionEntry& entry, const Ready& ready, const TuneResult* plan, const Verdict& verdict,
                    std::span<const RunInput> inputs) const {
  if (!settings_.report || !settings_.report->wanted()) return;
  Json line;
  line.add("event", "prepared").add("region", name()).add("inputs", shapes_text(inputs));
  line.add("threads", static_cast<double>(settings_.threads))
      .add("host", ready.host.empty() ? verdict.wins ? "" : verdict.reason : ready.host);
  if (verdict.known) {
    line.add("seconds", verdict.seconds).add("host_seconds", verdict.host_seconds).add("error", verdict.error);
  }
  if (plan != nullptr) {
    JsonList layers;
    for (const LayerReport& layer : plan->layers) {
      Json row;
      row.add("name", layer.name).add("type", layer.type).add("descriptor", layer.descriptor);
      row.add("seconds", layer.seconds).add("regret", layer.regret);
      layers.add(row);
    }
    line.add("predicted_s", plan->predicted_s).add("lower_bound_s", plan->lower_bound_s);
    line.add("measured", plan->measured).add("recalled", plan->recalled).add("guessed", plan->guessed);
    line.add_raw("layers", layers.str());
  }
  if (entry.net) line.add("packed_bytes", static_cast<double>(entry.net->stats().packed_bytes));
  settings_.report->write(line);
}

}  // namespace softneuro::ort
