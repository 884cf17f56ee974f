#include "tune/calibrate/rounding_errors.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>
#include <utility>

#include "base/arch.h"
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
  int rounded = -1;  // blob
  Grids::Grid grid;  // that it lies on
  const Grids* grids;
  Tapped tapped;
  std::vector<Fusion> forms;
  Assignment plan;
  std::shared_ptr<const Net> net;
  Tensors outputs;
  std::vector<void*> out;

  Runner(const Graph& graph, std::string structure, const Grids& used, const TuneSettings& settings, CostDb& db,
         const ParallelFor& parallel_for)
      : original(graph), hash(std::move(structure)), grids(&used) {
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
    if (blob != rounded) return;
    const QuantizeSteps steps = quantize_steps(*grid);
    const QuantizeKernels& kernels = *quantize_kernels(available_isas().front());
    std::vector<uint8_t> bytes(static_cast<size_t>(count));
    kernels.to_bytes(steps, in.f32(), bytes.data(), count);
    kernels.to_floats(steps, bytes.data(), to.f32(), count);
  }

  Layer layer_of(const Subject& subject) const {
    const auto form = std::find_if(forms.begin(), forms.end(), [&](const Fusion& one) {
      return one.layers.front() == subject.layer && one.kind == subject.form && on_floats(original, one);
    });
    return *on_floats(original, *form);
  }

  // With another layer in the place of one.
  std::shared_ptr<const Net> with(int index, const Layer& other, const TuneSettings& settings) const {
    Graph changed = tapped.graph;
    const int at = tapped.layers[static_cast<size_t>(index)];
    Layer& layer = changed.layer(at);
    const std::vector<int> inputs = layer.inputs, outputs = layer.outputs;
    layer = other;
    layer.inputs = inputs;
    layer.outputs = outputs;
    Assignment assignment = plan;
    const Problem problem = changed.problem(at, settings.threads);
    const Routine* chosen = assignment.layers[static_cast<size_t>(at)].routine;
    if (chosen->info().layer_type != layer.type || !accepts(*chosen, problem).accepted()) {
      const Routine* routine = accepting_routines(problem).front();
      assignment.layers[static_cast<size_t>(at)] = {routine, tunings(*routine, problem).front()};
      add_needed_adapts(changed, assignment, settings.threads);
    }
    return Net::prepare(changed, assignment, settings.threads, PackedCache::shared());
  }
};

RoundingErrors::RoundingErrors(const Graph& graph, std::shared_ptr<const Grids> grids, Others others,
                               const TuneSettings& settings, CostDb& db, const ParallelFor& parallel_for,
                               double seconds)
    : grids_(std::move(grids)), settings_(settings), db_(db), parallel_for_(parallel_for), seconds_(seconds) {
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
  for (const int input : graph.inputs()) add_blob(input);
  std::set<std::pair<int, std::string>> seen;
  size_t next = 0;
  const std::vector<Fusion> forms = find_forms(graph, *grids_);
  for (size_t l = 0; l < graph.layers().size(); ++l) {
    for (; next < forms.size() && forms[next].layers.front() == static_cast<int>(l); ++next) {
      const Fusion& form = forms[next];
      if (!on_floats(graph, form) || !seen.emplace(form.layers.front(), form.kind).second) continue;
      subjects_.push_back({.layer = form.layers.front(), .form = form.kind});
    }
    for (const int output : graph.layers()[l].outputs) add_blob(output);
  }
}

RoundingErrors::~RoundingErrors() = default;

bool RoundingErrors::add(const Graph& graph, const std::vector<const void*>& inputs, const Progress& progress) {
  const std::string hash = graph.structural_hash();
  if (runner_ == nullptr || runner_->hash != hash) {
    runner_ = std::make_unique<Runner>(graph, hash, *grids_, settings_, db_, parallel_for_);
    if (!timekeeper_) timekeeper_.emplace(seconds_);
  }
  Runner& runner = *runner_;
  const double start = timekeeper_->now();
  runner.rounded = -1;
  runner.net->run(inputs, runner.out, parallel_for_);
  Tensors truth;
  for (const HostTensor& output : runner.outputs) {
    truth.emplace_back(output.desc, output.schema);
    std::memcpy(truth.back().memory.data(), output.memory.data(), output.memory.size());
  }
  truths_.push_back(squares_of(truth, nullptr));
  const auto total = static_cast<int>(subjects_.size());
  for (size_t i = 0; i < subjects_.size() && timekeeper_->left() > 0; ++i) {
    Subject& subject = subjects_[i];
    runner.rounded = subject.blob;
    runner.grid = subject.grid;
    const auto net = subject.layer < 0 ? runner.net : runner.with(subject.layer, runner.layer_of(subject), settings_);
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

void RoundingErrors::tell(RangeSection& section) const {
  double most = 0;
  bool any = false;
  for (const Subject& subject : subjects_) {
    any = any || error_of(subject).has_value();
    most = std::max(most, error_of(subject).value_or(0));
  }
  if (!any) return;
  for (const Subject& subject : subjects_) {
    const double error = error_of(subject).value_or(most);
    if (subject.blob < 0) {
      section.layers.push_back({subject.layer, names_[static_cast<size_t>(subject.layer)], subject.form, error});
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
