#include "tune/calibrate/rounding_errors.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>
#include <utility>

#include "base/arch.h"
#include "graph/bias_correction.h"
#include "graph/forms.h"
#include "kernels/quantize/quantize.h"
#include "layers/contract/registry.h"
#include "layers/quantized/quantization.h"
#include "tune/calibrate/fit.h"
#include "tune/calibrate/taps.h"
#include "tune/measure/trial.h"

namespace softneuro {
namespace {

bool is_real(const TensorDesc& desc) { return desc.kind == ValueKind::real; }

// Sums of squares by output of reals; of differences from `truth`, if there is one.
std::vector<double> squares_of(const Tensors& outputs, const Tensors* truth) {
  std::vector<double> sums;
  for (size_t k = 0; k < outputs.size(); ++k) {
    if (!is_real(outputs[k].desc)) continue;
    const auto* x = static_cast<const float*>(outputs[k].memory.data());
    const auto* y = truth != nullptr ? static_cast<const float*>((*truth)[k].memory.data()) : nullptr;
    double sum = 0;
    for (int64_t i = 0; i < outputs[k].desc.shape.elements(); ++i) {
      const float truth = y != nullptr ? y[i] : x[i];
      if (!std::isfinite(truth)) continue;  // which says nothing of roundings
      const double d = static_cast<double>(x[i]) - (y != nullptr ? static_cast<double>(y[i]) : 0);
      sum += std::isfinite(d) ? d * d : INFINITY;
    }
    sums.push_back(sum);
  }
  return sums;
}

// The layer of a form with all of its blobs in floats: what is left is what its weights, or its own scales, do.
std::optional<Layer> on_floats(const Graph& graph, const Fusion& form) {
  const Layer& layer = graph.layers()[static_cast<size_t>(form.layers.front())];
  if (form.kind != "bytes") return form.layer;
  const Constant* bytes = form.layer.find_weight("weight");
  if (bytes == nullptr || bytes->get() == layer.find_weight("weight")->get()) return {};
  const ConstantData::Values values = (*bytes)->values();
  Layer rounded = layer;
  rounded.set_weight("weight", constant_from((*bytes)->shape(), {values.get(), values.get() + (*bytes)->elements()}));
  return rounded;
}

}  // namespace

// The graph with all its blobs watched, ready to run.
struct RoundingErrors::Runner {
  Graph original;
  std::string hash;
  static constexpr int none = -1, all = -2;
  int rounded = none;  // blob
  Grids::Grid grid;    // that it lies on, unless all lie on their own
  const Grids* grids;
  const std::vector<ChannelMeans>* means;  // of all samples
  std::vector<int> axes;
  mutable std::vector<ChannelMeans> sample_means;
  bool observes = false;  // those of the sample
  Tapped tapped;
  std::vector<Fusion> forms;
  Assignment plan;
  std::shared_ptr<const Net> net;
  Tensors outputs;
  std::vector<void*> out;

  Runner(const Graph& graph, std::string structure, const Grids& used, const std::vector<ChannelMeans>& of_all,
         const TuneSettings& settings, CostDb& db, const ParallelFor& parallel_for)
      : original(graph), hash(std::move(structure)), grids(&used), means(&of_all), axes(channel_axes(graph)) {
    const auto watch = std::make_shared<const Watch>(
        [this](int blob, const TensorView& in, const TensorView& to) { pass(blob, in, to); });
    tapped = tap(graph, watch, true);
    forms = find_forms(graph, used);
    plan = tune(tapped.graph, settings, db, parallel_for).assignment;
    net = Net::prepare(tapped.graph, plan, settings.threads, PackedCache::shared());
    for (const TensorDesc& desc : net->output_descs()) outputs.emplace_back(desc, natural_schema(desc));
    for (const HostTensor& tensor : outputs) out.push_back(tensor.memory.data());
  }

  void pass(int blob, const TensorView& in, const TensorView& to) const {
    const int64_t count = to.shape.elements();
    std::memcpy(to.data, in.data, dtype_bytes(to.schema.dtype, count));
    const auto b = static_cast<size_t>(blob);
    if (observes && axes[b] >= 0 && is_open(original, blob)) sample_means[b].observe(in.f32(), in.shape, axes[b]);
    const Grids::Grid& used = rounded == all ? grids->blob(blob) : grid;
    if ((blob != rounded && rounded != all) || used == nullptr) return;
    const QuantizeSteps steps = quantize_steps(*used);
    const QuantizeKernels& kernels = *quantize_kernels(available_isas().front());
    std::vector<uint8_t> bytes(static_cast<size_t>(count));
    kernels.to_bytes(steps, in.f32(), bytes.data(), count);
    kernels.to_floats(steps, bytes.data(), to.f32(), count);
  }

  // Returns what runs in the place of which layers. There are none if the subject needs means that are not known.
  std::map<int, Layer> layers_of(const Subject& subject) const {
    std::map<int, Layer> found;
    bool corrected = false;
    for (const Fusion& form : forms) {
      const int index = form.layers.front();
      const bool meant = form.kind == subject.form && (subject.together || index == subject.layer);
      if (!meant || found.contains(index)) continue;
      std::optional<Layer> layer = on_floats(original, form);
      if (!layer) continue;
      const Layer& own = original.layers()[static_cast<size_t>(index)];
      if (subject.corrected && !grids->shift_of(own, form.kind).empty()) {
        const std::vector<double> shift =
            shift_of(own.weight("weight"), *grids, form.kind, others_means(own.inputs[0]));
        if (!shift.empty()) take_out(*layer, shift);
        corrected = corrected || !shift.empty();
      }
      found.emplace(index, std::move(*layer));
    }
    if (subject.corrected && !corrected) found.clear();
    return found;
  }

  // The sample at hand has no part in these: a few samples' means fit these themselves too well.
  std::vector<double> others_means(int blob) const {
    const auto b = static_cast<size_t>(blob);
    return (*means)[b].without(sample_means[b]).means();
  }

  // This makes a net that has other layers in the place of some.
  std::shared_ptr<const Net> with(const std::map<int, Layer>& others, const TuneSettings& settings) const {
    Graph changed = tapped.graph;
    Assignment assignment = plan;
    bool adapts = false;
    for (const auto& [index, other] : others) {
      const int at = tapped.layers[static_cast<size_t>(index)];
      Layer& layer = changed.layer(at);
      const std::vector<int> inputs = layer.inputs, outputs = layer.outputs;
      layer = other;
      layer.inputs = inputs;
      layer.outputs = outputs;
      const Problem problem = changed.problem(at, settings.threads);
      auto& choice = assignment.layers[static_cast<size_t>(at)];
      if (choice.routine->info().layer_type == layer.type && accepts(*choice.routine, problem).accepted()) continue;
      const Routine* routine = accepting_routines(problem).front();
      choice = {routine, tunings(*routine, problem).front()};
      adapts = true;
    }
    if (adapts) add_needed_adapts(changed, assignment, settings.threads);
    return Net::prepare(changed, assignment, settings.threads, PackedCache::shared());
  }
};

RoundingErrors::RoundingErrors(const Graph& graph, std::shared_ptr<const Grids> grids, Others others,
                               const std::vector<ChannelMeans>& means, const TuneSettings& settings, CostDb& db,
                               const ParallelFor& parallel_for, double seconds)
    : grids_(std::move(grids)),
      means_(means),
      settings_(settings),
      db_(db),
      parallel_for_(parallel_for),
      seconds_(seconds) {
  for (const Layer& layer : graph.layers()) names_.push_back(layer.name);
  // In the order of the layers, so that what time is lacking for is not all of one kind.
  const auto add_blob = [&](int blob) {
    if (grids_->blob(blob) == nullptr) return;
    subjects_.push_back({.blob = blob, .grid = grids_->blob(blob)});
    for (const ValueRange& range : others[blob]) {
      auto grid = std::make_shared<const Quantization>(grid_of(range));
      subjects_.push_back({.blob = blob, .grid = std::move(grid), .range = range});
    }
  };
  std::set<std::pair<int, std::string>> seen;
  size_t next = 0;
  const std::vector<Fusion> forms = find_forms(graph, *grids_);
  std::set<std::string> correctable;
  for (const Fusion& form : forms) {
    const Layer& layer = graph.layers()[static_cast<size_t>(form.layers.front())];
    if (on_floats(graph, form) && !grids_->shift_of(layer, form.kind).empty()) correctable.insert(form.kind);
  }
  for (const std::string& form : correctable) {
    for (const bool corrected : {false, true}) {
      subjects_.push_back({.form = form, .corrected = corrected, .together = true});
    }
  }
  for (const int input : graph.inputs()) add_blob(input);
  for (size_t l = 0; l < graph.layers().size(); ++l) {
    for (; next < forms.size() && forms[next].layers.front() == static_cast<int>(l); ++next) {
      const Fusion& form = forms[next];
      if (!on_floats(graph, form) || !seen.emplace(form.layers.front(), form.kind).second) continue;
      const Constant* weight = graph.layers()[l].find_weight("weight");
      const double error = weight != nullptr ? weight_error(*weight, *grids_, form.kind) : INFINITY;
      subjects_.push_back({.layer = form.layers.front(), .form = form.kind, .weights = error});
      if (grids_->shift_of(graph.layers()[l], form.kind).empty()) continue;
      subjects_.push_back({.layer = form.layers.front(), .form = form.kind, .corrected = true});
    }
    for (const int output : graph.layers()[l].outputs) add_blob(output);
  }
}

RoundingErrors::~RoundingErrors() = default;

bool RoundingErrors::add(const Graph& graph, const std::vector<const void*>& inputs, const Progress& progress) {
  const std::string hash = graph.structural_hash();
  if (runner_ == nullptr || runner_->hash != hash) {
    runner_ = std::make_unique<Runner>(graph, hash, *grids_, means_, settings_, db_, parallel_for_);
    if (!timekeeper_) timekeeper_.emplace(seconds_);
  }
  Runner& runner = *runner_;
  const double start = timekeeper_->now();
  runner.rounded = Runner::none;
  runner.sample_means.assign(graph.blobs().size(), {});
  runner.observes = true;
  runner.net->run(inputs, runner.out, parallel_for_);
  runner.observes = false;
  Tensors truth;
  for (const HostTensor& output : runner.outputs) {
    truth.emplace_back(output.desc, output.schema);
    std::memcpy(truth.back().memory.data(), output.memory.data(), output.memory.size());
  }
  truths_.push_back(squares_of(truth, nullptr));
  const auto total = static_cast<int>(subjects_.size());
  for (size_t i = 0; i < subjects_.size(); ++i) {
    Subject& subject = subjects_[i];
    // Two that are compared have to run on the same samples.
    const bool behind = subject.corrected && subject.samples < subjects_[i - 1].samples;
    if (timekeeper_->left() <= 0 && !behind) break;
    const auto layers = runner.layers_of(subject);
    if (subject.corrected && layers.empty()) continue;
    runner.rounded = subject.together && subject.form == "bytes" ? Runner::all : subject.blob;
    runner.grid = subject.grid;
    const auto net = layers.empty() ? runner.net : runner.with(layers, settings_);
    net->run(inputs, runner.out, parallel_for_);
    const Squares squares = squares_of(runner.outputs, &truth);
    subject.squares.resize(squares.size(), 0);
    for (size_t k = 0; k < squares.size(); ++k) subject.squares[k] += squares[k];
    ++subject.samples;
    if (progress) progress(static_cast<int>(i) + 1, total);
  }
  return timekeeper_->left() > timekeeper_->now() - start;
}

std::optional<double> RoundingErrors::error_of(const Subject& subject) const {
  if (subject.samples == 0 || subject.squares.empty()) return {};
  double worst = 0;
  for (size_t k = 0; k < subject.squares.size(); ++k) {
    double truth = 0;
    for (int i = 0; i < subject.samples; ++i) truth += truths_[static_cast<size_t>(i)][k];
    worst = std::max(worst, truth > 0 ? subject.squares[k] / truth : subject.squares[k]);
  }
  return std::min(std::sqrt(worst), unknown_error);
}

double RoundingErrors::foretold(const Subject& subject) const {
  double worst_blob = 0, worst_layer = 1;  // of a layer: as a multiple of its weights' error
  for (const Subject& other : subjects_) {
    const std::optional<double> error = error_of(other);
    if (!error || other.together || other.corrected) continue;
    if (other.layer < 0) {
      worst_blob = std::max(worst_blob, *error);
    } else if (other.weights > 0) {
      worst_layer = std::max(worst_layer, *error / other.weights);
    }
  }
  if (subject.layer < 0) return worst_blob;
  return std::min(std::max(worst_blob, worst_layer * subject.weights), unknown_error);
}

void RoundingErrors::tell(RangeSection& section) const {
  const bool any = std::any_of(subjects_.begin(), subjects_.end(),
                               [&](const Subject& one) { return !one.together && error_of(one).has_value(); });
  if (!any) return;
  std::set<std::string> corrected;  // forms whose corrections help when all layers have them
  for (size_t i = 0; i < subjects_.size() && subjects_[i].together; i += 2) {
    const auto plain = error_of(subjects_[i]), other = error_of(subjects_[i + 1]);
    if (plain && other && *other < *plain) corrected.insert(subjects_[i].form);
  }
  for (const Subject& subject : subjects_) {
    if (subject.together) continue;
    const std::optional<double> measured = error_of(subject);
    const double error = measured ? *measured : foretold(subject);
    if (subject.blob < 0) {
      const std::string& name = names_[static_cast<size_t>(subject.layer)];
      if (!subject.corrected) {
        section.layers.push_back({subject.layer, name, subject.form, error});
      } else if (measured && corrected.contains(subject.form) && error < *section.layers.back().error) {
        section.layers.back() = {subject.layer, name, subject.form, error, true};
      }
      continue;
    }
    for (BlobRange& row : section.blobs) {
      if (row.blob != subject.blob || (row.error && *row.error <= error)) continue;
      row.error = error;
      if (subject.range) row.range = *subject.range;
    }
  }
}

}  // namespace softneuro
