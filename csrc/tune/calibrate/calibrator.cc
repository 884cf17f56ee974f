#include "tune/calibrate/calibrator.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "base/error.h"
#include "layers/host/host.h"
#include "tune/calibrate/calibrated.h"
#include "tune/calibrate/rounding_errors.h"
#include "tune/calibrate/taps.h"

namespace softneuro {
namespace {

constexpr size_t most_kept = size_t{64} << 20;  // bytes of inputs
constexpr size_t most_samples = 32;

void copy_dense(const TensorView& from, const TensorView& to) {
  std::memcpy(to.data, from.data, dtype_bytes(to.schema.dtype, to.shape.elements()));
}

}  // namespace

struct Calibrator::Sample {
  size_t shape = 0;
  std::vector<std::pair<int, AlignedBuffer>> inputs;  // by graph input
  size_t bytes = 0;
};

struct Calibrator::Shaped {
  Graph graph;
  std::string hash;
  std::shared_ptr<const Net> net;
};

Calibrator::Calibrator(TuneSettings settings, CostDb& db) : settings_(std::move(settings)), db_(db) {
  settings_.mode = TuneMode::cached;
  settings_.calibration = nullptr;
  settings_.pins = {};  // which may ask for what there are no grids for yet
  settings_.max_memory = {};
}

Calibrator::~Calibrator() = default;

std::shared_ptr<const Net> Calibrator::watching(const Graph& graph) {
  const std::string hash = graph.structural_hash();
  for (const auto& shaped : shapes_) {
    if (shaped->hash == hash) return shaped->net;
  }
  if (statistics_.empty()) statistics_.resize(graph.blobs().size()), means_.resize(graph.blobs().size());
  if (statistics_.size() != graph.blobs().size()) throw Error("a graph of another model", "calibration");
  const size_t index = shapes_.size();
  auto shaped = std::make_unique<Shaped>(Shaped{graph, hash, nullptr});
  std::vector<int> input_of(graph.blobs().size(), -1);
  for (size_t k = 0; k < graph.inputs().size(); ++k)
    input_of[static_cast<size_t>(graph.inputs()[k])] = static_cast<int>(k);
  std::vector<bool> open;
  for (size_t b = 0; b < graph.blobs().size(); ++b) open.push_back(is_open(graph, static_cast<int>(b)));
  const auto watch = std::make_shared<const Watch>(
      [this, index, input_of, open, axes = channel_axes(graph)](int blob, const TensorView& in, const TensorView& out) {
        const auto b = static_cast<size_t>(blob);
        copy_dense(in, out);
        if (open[b]) statistics_[b].observe({in.f32(), static_cast<size_t>(in.shape.elements())});
        if (open[b] && axes[b] >= 0) means_[b].observe(in.f32(), in.shape, axes[b]);
        if (input_of[b] < 0) return;
        if (pending_ == nullptr) pending_ = std::make_unique<Sample>();
        const size_t bytes = dtype_bytes(in.schema.dtype, in.shape.elements());
        AlignedBuffer copy(bytes);
        std::memcpy(copy.data(), in.data, bytes);
        pending_->shape = index;
        pending_->bytes += bytes;
        pending_->inputs.emplace_back(input_of[b], std::move(copy));
      });
  const Graph watched = tap(graph, watch, false).graph;
  const Assignment plan = tune(watched, settings_, db_, own_pool(settings_.threads)).assignment;
  shaped->net = Net::prepare(watched, plan, settings_.threads, PackedCache::shared());
  shapes_.push_back(std::move(shaped));
  return shapes_.back()->net;
}

void Calibrator::end_batch() {
  ++batches_;
  std::unique_ptr<Sample> sample = std::move(pending_);
  if (sample == nullptr || samples_.size() >= most_samples) return;
  const bool whole = sample->inputs.size() == shapes_[sample->shape]->graph.inputs().size();
  if (!whole || (kept_bytes_ + sample->bytes > most_kept && !samples_.empty())) return;
  kept_bytes_ += sample->bytes;
  samples_.push_back(std::move(*sample));
}

std::shared_ptr<const Grids> grids_of(const Graph& graph, const RangeSection& section, bool corrects) {
  std::vector<Grids::Grid> blobs(graph.blobs().size());
  for (const BlobRange& row : section.blobs) {
    const bool known = row.blob < static_cast<int>(blobs.size()) && is_open(graph, row.blob) && row.count > 0;
    if (known) blobs[static_cast<size_t>(row.blob)] = std::make_shared<const Quantization>(grid_of(row.range));
  }
  share_grids(graph, blobs);
  Learnt learnt;
  for (const BlobRange& row : section.blobs) {
    const bool is_input = std::find(graph.inputs().begin(), graph.inputs().end(), row.blob) != graph.inputs().end();
    if (is_input && row.seen) learnt.inputs[row.blob] = {row.seen->least, row.seen->most};
  }
  if (corrects) {
    for (const BlobMeans& row : section.means) learnt.means[row.blob] = row.values;
    for (const LayerError& row : section.layers) {
      if (row.corrected) learnt.corrected.emplace(row.layer, row.form);
    }
  }
  return std::make_shared<const Grids>(graph, std::move(blobs), std::move(learnt));
}

RangeSection Calibrator::finish(const FitSettings& method, double seconds, const ParallelFor& parallel_for,
                                const Progress& progress) {
  if (batches_ == 0 || shapes_.empty()) {
    throw Error("no batch was observed", "calibration", "give data of at least one batch, and run the model on it");
  }
  const Graph& graph = shapes_.front()->graph;
  RangeSection section;
  section.key = {range_key(graph), graph.weights_identity()};
  section.method = method.str();
  section.batches = batches_;
  section.samples = static_cast<int64_t>(samples_.size());
  RoundingErrors::Others others;
  const std::vector<FitSettings> fits = fits_to_try(method);
  for (size_t b = 0; b < statistics_.size(); ++b) {
    const BlobStatistics& seen = statistics_[b];
    if (seen.count() + seen.nonfinite() == 0) continue;
    BlobRange row{static_cast<int>(b), graph.blobs()[b].name, {}, seen.count(), seen.nonfinite()};
    if (seen.count() > 0) row.range = fit(seen, method), row.seen = seen.range();
    std::vector<ValueRange>& more = others[static_cast<int>(b)];
    for (size_t i = 1; i < fits.size() && seen.count() > 0; ++i) {
      const ValueRange range = fit(seen, fits[i]);
      if (range != row.range && std::find(more.begin(), more.end(), range) == more.end()) more.push_back(range);
    }
    section.blobs.push_back(std::move(row));
    if (auto means = means_[b].means(); !means.empty())
      section.means.push_back({static_cast<int>(b), std::move(means)});
  }
  const bool any =
      std::any_of(section.blobs.begin(), section.blobs.end(), [](const auto& row) { return row.count > 0; });
  if (!any) throw Error("no finite value was observed", "calibration", "give data without NaN and infinities");
  const auto grids = grids_of(graph, section);
  RoundingErrors errors(graph, grids, std::move(others), means_, settings_, db_, parallel_for, seconds);
  for (Sample& sample : samples_) {
    std::vector<const void*> inputs(sample.inputs.size());
    for (const auto& [input, memory] : sample.inputs) inputs[static_cast<size_t>(input)] = memory.data();
    if (!errors.add(shapes_[sample.shape]->graph, inputs, progress)) break;
  }
  errors.tell(section);
  for (LayerError& row : section.layers) row.name = graph.layers()[static_cast<size_t>(row.layer)].name;
  return section;
}

}  // namespace softneuro
