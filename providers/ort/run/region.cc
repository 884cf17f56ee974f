#include "providers/ort/run/region.h"

#include <algorithm>
#include <set>

#include "base/hash.h"
#include "base/log.h"
#include "base/text.h"
#include "graph/passes/passes.h"
#include "providers/ort/lower/ops/ops.h"
#include "providers/ort/run/region_call.h"
#include "tune/calibrate/calibrated.h"

namespace softneuro::ort {
namespace {

constexpr int64_t most_sizes = 1 << 16;  // in one input that holds sizes
constexpr int64_t pause_ns = 2'000'000;  // until idle threads of the host's sleep

// A saved region that cannot be what was saved, and that the host must not run either.
struct NotAsSaved : CallersError {
  using CallersError::CallersError;
};

}  // namespace

Region::Region(HostGraph ops, RegionSettings settings) : ops_(std::move(ops)), settings_(std::move(settings)) {
  find_grids(ops_);
  in_steps_ = ort::outputs_in_steps(ops_);
  softneuro::RegionSettings core;
  core.name = name();
  core.content = content();
  core.host = "onnxruntime " + std::string(Runtime::get().version());
  for (const auto& [key, value] : settings_.host_entries) core.host += " " + key + "=" + value;
  core.options = settings_.options;
  core.pause_ns = pause_ns;
  core.prepared = [this](const Signature& signature, const ShapeState& state, const Graph* graph) {
    note_prepared(signature, state, graph);
  };
  core.outside = [this](const OutsideCounts::Found& found) { note_outside(found); };
  core_ = std::make_unique<softneuro::Region>(std::move(core));
}

Region::~Region() {
  if (!parse_calibration(settings_.options.calibration).collects) return;
  try {
    core_->finish_calibration([this](int done, int total) {
      if (settings_.report) settings_.report->progress(done, total);
    });
  } catch (const std::exception& error) {
    log_warning("region '" + name() + "': its calibration is lost: " + error.what());
  }
}

std::string Region::name() const { return ops_.outputs.empty() ? "region" : ops_.value(ops_.outputs[0]).name; }

// Everything but the values of weights, which are real constants that layers have as such, and large ones.
std::string Region::content() const {
  constexpr int64_t small = 64;  // elements
  std::set<int> others;
  for (const HostNode& node : ops_.nodes) {
    if (node.is_step || !has_weights(node)) others.insert(node.inputs.begin(), node.inputs.end());
  }
  std::string text;
  const auto list = [&](const auto& ids) {
    for (const auto id : ids) text += std::to_string(id) + " ";
    text += "\n";
  };
  for (const HostNode& node : ops_.nodes) {
    text += node.domain + "." + node.op + "-" + std::to_string(node.since_version) + (node.is_step ? " step " : " ");
    for (const auto& [name, value] : node.attributes) {
      text += name + "=" + attribute_text(value) + ";";
    }
    list(node.inputs), list(node.outputs);
  }
  for (size_t id = 0; id < ops_.values.size(); ++id) {
    const HostValue& value = ops_.values[id];
    text += std::to_string(value.type.number()) + ":";
    list(value.dims);
    if (!value.constant) continue;
    list(value.constant->dims);
    const bool is_weight = is_real(value.constant->type) && !others.contains(static_cast<int>(id));
    if (is_weight || value.constant->elements() > small) continue;
    text += bytes_hash(value.constant->data.get(), value.constant->bytes());
  }
  list(ops_.inputs), list(ops_.outputs);
  return content_hash(text);
}

const HostRegion& Region::host() {
  const std::lock_guard lock(host_mutex_);
  if (!no_host_.empty()) throw NoHost(no_host_);
  if (host_) return *host_;
  try {
    host_ = std::make_unique<HostRegion>(
        ops_,
        HostRegion::Settings{
            .threads = settings_.threads, .spin = true, .open = open_shapes(), .entries = settings_.host_entries});
  } catch (const std::exception& error) {
    // There is nothing to be worse than, or nothing that a comparison could be made with.
    no_host_ = error.what();
    throw NoHost(no_host_);
  }
  return *host_;
}

Signature Region::signature(std::span<const RunInput> inputs) const {
  Signature signature;
  signature.reserve(inputs.size() * 5);
  for (size_t i = 0; i < inputs.size(); ++i) {
    const RunInput& input = inputs[i];
    signature.push_back(static_cast<int64_t>(input.dims.size()));
    signature.insert(signature.end(), input.dims.begin(), input.dims.end());
    if (!is_sized(i) || input.data == nullptr) continue;
    const HostTensor sizes{input.type,
                           {input.dims.begin(), input.dims.end()},
                           std::shared_ptr<const void>(input.data, [](const void*) {})};
    if (sizes.elements() > most_sizes) continue;  // declined
    const auto values = sizes.integers();
    signature.insert(signature.end(), values.begin(), values.end());
  }
  return signature;
}

std::string Region::declined(std::span<const RunInput> inputs) const {
  for (size_t i = 0; i < inputs.size(); ++i) {
    const int64_t count = Shape(inputs[i].dims).elements();
    if (count == 0) return "it is on an empty tensor";
    if (is_sized(i) && count > most_sizes) return "an input of sizes has " + std::to_string(count);
  }
  return {};
}

Lowered Region::lowered(std::span<const RunInput> inputs, WeightConstants& constants) {
  std::vector<GivenInput> given;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const RunInput& input = inputs[i];
    GivenInput& one = given.emplace_back();
    one.shape = Shape(input.dims);
    if (is_sized(i)) one.known = copied(input.type, {input.dims.begin(), input.dims.end()}, input.data);
  }
  Lowered lowered = Lowering(ops_, settings_.threads, constants).run(given);
  lowers_ = true;
  return lowered;
}

// Once all ops have been lowered, it is clear that what decides shapes follows from the signature.
void Region::note_outputs(const Signature& signature, std::span<const RunInput> inputs, OutputDims dims) {
  if (!declined(inputs).empty()) return;
  if (!lowers_ && !tried_.exchange(true)) {
    WeightConstants constants;
    try {
      lowered(inputs, constants);
    } catch (const std::exception&) {  // left to other calls
    }
  }
  if (lowers_) output_shapes_.add(signature, std::move(dims));
}

LoweredCall Region::lower(std::span<const RunInput> inputs) {
  const bool declared = inputs.empty() || inputs[0].data == nullptr;
  try {
    Lowered lowered = this->lowered(inputs, constants_);
    optimize(lowered.graph);
    auto places = std::make_shared<const Places>(Places{lowered.inputs, lowered.outputs});
    return {std::move(lowered.graph), {}, {}, std::move(places)};
  } catch (const Error& error) {
    if (!is_saved_ || !declared) throw;
    throw NotAsSaved(std::string("the saved region is damaged: ") + error.what(), {}, "make the model anew");
  }
}

std::vector<RunInput> Region::declared_inputs() const {
  std::vector<RunInput> inputs;
  for (const int id : ops_.inputs) {
    const HostValue& value = ops_.value(id);
    if (value.sized || !value.has_shape) return {};
    if (std::any_of(value.dims.begin(), value.dims.end(), [](int64_t dim) { return dim < 0; })) return {};
    inputs.push_back({value.type.known(), value.dims, nullptr});
  }
  return inputs;
}

void Region::prepare_declared() {
  const auto inputs = declared_inputs();
  if (inputs.empty()) return;
  OrtRegionCall call(*this, inputs, false);
  core_->prepare(signature(inputs), constant_weights, call);
  restored_.clear();  // what the net has not taken is for other shapes, if for anything
}

std::string Region::declared_verdict() {
  std::vector<RunInput> inputs = declared_inputs();
  if (!settings_.options.never_worse || settings_.options.tune == TuneMode::off || inputs.empty()) return {};
  std::vector<HostTensor> memory;
  if (settings_.options.tune == TuneMode::profile) {
    for (RunInput& input : inputs) {
      input.data = memory.emplace_back(made_up(input.type, {input.dims.begin(), input.dims.end()})).data.get();
    }
  }
  OrtRegionCall call(*this, inputs, !memory.empty());
  try {
    const auto ready = core_->prepare(signature(inputs), constant_weights, call);
    if (ready == nullptr || ready->net != nullptr) return {};
    return core_->shapes().back().second.host;
  } catch (const PlanFileError&) {
    throw;
  } catch (const PinError&) {
    throw;
  } catch (const std::exception& error) {  // the host's, on inputs of no meaning
    log_warning("region '" + name() + "' is not compared with the host: " + error.what());
    return {};
  }
}

SavedRegion Region::saved() const {
  SavedRegion saved;
  saved.ops = ops_;
  saved.device = device_identity();
  saved.threads = settings_.threads;
  for (const auto& [signature, state] : core_->shapes()) {
    const std::lock_guard lock(mutex_);
    const auto plan = plans_.find(signature);
    saved.shapes.push_back({signature, plan == plans_.end() ? Plan() : plan->second, state.host});
  }
  std::set<const Packed*> own;
  for (const auto& packed : core_->packings()) own.insert(packed.get());
  for (PackedCache::Item& item : PackedCache::shared().items()) {
    if (own.contains(item.packed.get())) saved.packings.push_back(std::move(item));
  }
  return saved;
}

void Region::restore(SavedRegion saved, bool other_weights) {
  is_saved_ = true;
  std::string other;
  if (saved.device != device_identity()) other = "for another device or by another version";
  if (saved.threads != settings_.threads) {
    other =
        "for " + std::to_string(saved.threads) + " thread(s), this session has " + std::to_string(settings_.threads);
  }
  if (other_weights) other = "with other weights than the program gives";
  if (!other.empty()) {
    const std::string text = "region '" + name() + "' was made " + other;
    if (settings_.options.strict) throw Error(text, {}, "make the model anew, or give strict=0 to tune it here");
    return log_warning(text + ": it is tuned anew");
  }
  for (SavedShape& shape : saved.shapes) core_->restore(shape.signature, std::move(shape.plan), std::move(shape.host));
  restored_ = std::move(saved.packings);
  PackedCache::shared().adopt(restored_);
}

}  // namespace softneuro::ort
