// Graph + Assignment -> Program: steps in order, weights packed.
#include <algorithm>
#include <chrono>
#include <new>
#include <set>

#include "layers/constant/constant.h"
#include "net/contiguous.h"
#include "net/draft.h"
#include "net/fused_layers.h"
#include "net/pack_ahead.h"

namespace softneuro {
namespace {

// Gives errors of preparation their place.
template <typename Fn>
auto guarded(const std::string& where, Fn&& fn) {
  try {
    return fn();
  } catch (const std::bad_alloc&) {
    throw Error("out of memory while the weights were packed", where, "free memory elsewhere");
  } catch (const Error& error) {
    if (!error.where().empty()) throw;
    throw Error(error.what(), where);
  }
}

class Builder {
 public:
  Builder(const Graph& graph, const Assignment& assignment, int threads, PackedCache& cache)
      : graph_(graph), assignment_(assignment), threads_(threads), cache_(cache) {
    program_.threads = threads;
    adapt_layer_.type = "adapt";
  }

  Program build() {
    if (threads_ < 1) throw Error("a net needs at least one thread, not " + std::to_string(threads_));
    if (assignment_.layers.size() != graph_.layers().size())
      throw Error("the assignment is for a graph of " + std::to_string(assignment_.layers.size()) + " layers, not " +
                  std::to_string(graph_.layers().size()));
    fused_ = std::make_unique<const FusedLayers>(graph_, assignment_.layers, assignment_.grids.get());
    values_of_blob_.resize(graph_.blobs().size());
    adapt_used_.resize(assignment_.adapts.size());
    for (size_t k = 0; k < graph_.inputs().size(); ++k) {
      const int blob = graph_.inputs()[k];
      const Schema& schema = graph_.input_schemas()[k];
      values_[new_value(blob, schema, true)].input = static_cast<int>(k);
      program_.input_descs.push_back(graph_.blob(blob).desc);
      program_.input_schemas.push_back(schema);
    }
    const auto start = std::chrono::steady_clock::now();
    ahead_ = pack_ahead(graph_, *fused_, assignment_, threads_, cache_);
    packing_ += std::chrono::steady_clock::now() - start;
    for (size_t l = 0; l < graph_.layers().size(); ++l) add_layer(static_cast<int>(l));
    ahead_.clear();
    add_outputs();
    place(draft_);
    program_.stats.packing_s = std::chrono::duration<double>(packing_).count();
    return std::move(draft_.program);
  }

 private:
  static size_t at(int index) { return static_cast<size_t>(index); }

  size_t new_value(int blob, const Schema& schema, bool read_only) {
    return new_value(blob, schema, read_only, dense_strides(graph_.blob(blob).desc.shape, schema.layout));
  }
  size_t new_value(int blob, const Schema& schema, bool read_only, const Strides& strides) {
    const Blob& b = graph_.blob(blob);
    Value value;
    value.name = b.name;
    value.desc = stored(graph_, assignment_.grids.get(), blob, schema);
    value.schema = schema;
    value.strides = strides;
    const size_t bytes = dtype_bytes(schema.dtype, spanned_elements(b.desc.shape, strides, schema.layout));
    values_of_blob_[at(blob)].push_back({schema, static_cast<int>(values_.size())});
    values_.push_back(std::move(value));
    draft_.plan_values.push_back({bytes, read_only, -1, static_cast<int>(schema.platform)});
    return values_.size() - 1;
  }

  // The blob's value in a schema, adapted if the assignment says so; -1 if it is not to be had.
  int find_value(int blob, const Schema& schema) {
    for (const auto& [known, id] : values_of_blob_[at(blob)])
      if (known == schema) return id;
    for (size_t a = 0; a < assignment_.adapts.size(); ++a) {
      const AdaptChoice& adapt = assignment_.adapts[a];
      if (adapt.blob != blob || adapt.to != schema || adapt_used_[a]) continue;
      adapt_used_[a] = true;
      const int source = find_value(blob, adapt.from);
      if (source >= 0) return add_adapt(blob, source, schema);
    }
    return -1;
  }

  int need_value(int blob, const Schema& schema, const std::string& where) {
    const int id = find_value(blob, schema);
    if (id >= 0) return id;
    std::string have;
    for (const auto& [known, unused] : values_of_blob_[at(blob)]) have += (have.empty() ? "" : ", ") + known.str();
    throw Error(
        "needs blob '" + graph_.blob(blob).name + "' as " + schema.str() + ", which is only to be had as " + have,
        where, "the plan lacks an adapt");
  }

  int add_adapt(int blob, int source, const Schema& to) {
    const Schema from = values_[at(source)].schema;
    const TensorDesc desc = stored(graph_, assignment_.grids.get(), blob, from, to);
    const std::string name = graph_.blob(blob).name;
    const Routine* routine = adapt_routine(desc, from, to);
    if (routine == nullptr)
      throw Error("no routine adapts " + from.str() + " to " + to.str() + " for shape " + desc.shape.str(),
                  "blob '" + name + "'");
    Problem problem{&adapt_layer_, {desc}, desc, threads_};
    const Tuning tuning = tunings(*routine, problem).front();
    const std::string descriptor = routine->descriptor(tuning);
    const std::string where = "adapt of '" + name + "' (" + descriptor + ")";
    const bool constant = values_[at(source)].constant != nullptr;
    if (constant) {
      const size_t target = new_value(blob, to, true);
      adapt_constant(problem, *routine, tuning, at(source), target, where);
      return static_cast<int>(target);
    }
    const bool view = routine->info().view || same_memory(desc.shape, from, to);
    const Strides strides =
        view && to.layout.strided ? values_[at(source)].strides : dense_strides(desc.shape, to.layout);
    const size_t target = new_value(blob, to, false, strides);
    MemoryStep plan{.reads = {source}, .writes = {static_cast<int>(target)}, .offsets = {}};
    if (view) {
      plan.kind = MemoryStep::Kind::view;
      plan.offsets = {0};
      add_step(plan, {}, -1, name, descriptor);
    } else {
      std::unique_ptr<const Prepared> prepared;
      if (desc.shape.elements() > 0) prepared = prepare(*routine, tuning, problem, nullptr, where);
      add_step(plan, std::move(prepared), -1, name, descriptor);
    }
    return static_cast<int>(target);
  }

  void adapt_constant(const Problem& problem, const Routine& routine, const Tuning& tuning, size_t source,
                      size_t target, const std::string& where) {
    AlignedBuffer result(draft_.plan_values[target].bytes);
    const Value &from = values_[source], &to = values_[target];
    const TensorView in = dense_view(const_cast<void*>(from.constant), from.desc.shape, from.schema);
    const TensorView out = dense_view(result.data(), to.desc.shape, to.schema);
    if (in.shape.elements() > 0) {
      const auto prepared = prepare(routine, tuning, problem, nullptr, where);
      const WorkspaceSize size = prepared->workspace();
      const AlignedBuffer memory(size.bytes());
      prepared->run({&in, &out, {size, memory.data()}, ParallelFor()});
    }
    values_[target].constant = result.data();
    program_.stats.packed_bytes += result.size();
    program_.adapted_constants.push_back(std::move(result));
  }

  void add_constant(const Layer& layer) {
    const ConstantData& value = *layer.weight("value");
    const Schema schema = constant_schema(layer);
    ConstantData::Memory data = schema.dtype == DType::float32 ? value.values() : value.memory();
    values_[new_value(layer.output(), schema, true)].constant = data.get();
    program_.constants.push_back(std::move(data));
  }

  void add_layer(int index) {
    if (fused_->covered(index)) return;
    const Layer& layer = fused_->layer(index);
    if (layer.type == "constant") {
      add_constant(layer);
      return;
    }
    const RoutineChoice& choice = assignment_.layers[at(index)];
    const RoutineInfo& info = choice.routine->info();
    const std::string descriptor = choice.descriptor();
    const std::string where = "layer '" + layer.name + "' (" + descriptor + ")";
    if (!isa_available(info.isa))
      throw Error("this machine cannot run " + std::string(isa_name(info.isa)) + " code", where, "tune again here");
    const Problem problem = fused_->problem(index, threads_);
    if (const Refusal refusal = accepts(*choice.routine, problem); !refusal.accepted())
      throw Error("the routine declines: " + refusal.reason(), where);

    MemoryStep plan;
    for (size_t k = 0; k < layer.inputs.size(); ++k)
      plan.reads.push_back(
          need_value(layer.inputs[k], choice.routine->input_schema(problem, static_cast<int>(k)), where));
    add_writes(plan, problem, *choice.routine, where);
    classify(plan, problem, *choice.routine);
    std::unique_ptr<const Prepared> prepared;
    const bool anything = std::any_of(problem.outs.begin(), problem.outs.end(),
                                      [](const TensorDesc& desc) { return desc.shape.elements() > 0; });
    if (plan.kind == MemoryStep::Kind::compute && anything) {
      auto packed = pack(choice, problem, where);
      prepared = prepare(*choice.routine, choice.tuning, problem, std::move(packed), where);
      const bool on_residual = layer.post.residual && prepared->works_on_residual();
      if (on_residual && values_[at(plan.reads.back())].schema == info.out)
        plan.inplace = static_cast<int>(plan.reads.size()) - 1;
    }
    add_step(plan, std::move(prepared), index, layer.name, descriptor);
    for (const AdaptChoice& adapt : assignment_.adapts)
      if (std::count(layer.outputs.begin(), layer.outputs.end(), adapt.blob) > 0)
        need_value(adapt.blob, adapt.to, "adapt of '" + layer.name + "'");
  }

  void add_writes(MemoryStep& plan, const Problem& problem, const Routine& routine, const std::string& where) {
    const Layer& layer = *problem.layer;
    const LayerDef& def = layer_def(layer.type);
    for (size_t k = 0; k < layer.outputs.size(); ++k) {
      const auto output = static_cast<int>(k);
      const Schema schema = routine.output_schema(problem, output);
      Strides strides = dense_strides(problem.outs[k].shape, schema.layout);
      if (routine.info().view) {
        strides = routine.view_strides(problem, values_[at(plan.reads[0])].strides);
        if (!schema.layout.whole_images())
          guarded(where, [&] { check_strides(problem.outs[k].shape, strides, schema.layout); });
      }
      plan.writes.push_back(static_cast<int>(new_value(layer.outputs[k], schema, false, strides)));
      const int updated = updated_input(def, layer, output);
      if (updated < 0) continue;
      plan.updates.resize(layer.outputs.size(), -1);
      plan.updates[k] = updated;
      check_update(layer.inputs[at(updated)], values_[at(plan.reads[at(updated)])], schema, where);
      updating_blobs_.insert(layer.outputs[k]);
    }
  }

  // Memory to be updated is the blob's own: a conversion of it would be updated and lost.
  void check_update(int blob, const Value& value, const Schema& schema, const std::string& where) const {
    const Schema& own = values_[at(values_of_blob_[at(blob)].front().second)].schema;
    if (value.schema == own && value.schema == schema && value.constant == nullptr) return;
    const std::string what = value.constant != nullptr ? "a constant" : own.str();
    throw Error("an output is declared to be the memory of blob '" + graph_.blob(blob).name + "', which is " + what,
                where, "it has to be as the routine writes it, " + schema.str());
  }

  // What needs no step of its own.
  void classify(MemoryStep& plan, const Problem& problem, const Routine& routine) const {
    const RoutineInfo& info = routine.info();
    const Layer& layer = *problem.layer;
    const bool one_schema = std::all_of(plan.reads.begin(), plan.reads.end(),
                                        [&](int read) { return values_[at(read)].schema == info.out; });
    plan.inplace = info.inplace_input;
    if (plan.inplace >= 0 && values_[at(plan.reads[at(plan.inplace)])].schema != info.out) plan.inplace = -1;
    if (info.view) {
      plan.kind = MemoryStep::Kind::view;
      const Strides& strides = values_[at(plan.reads[0])].strides;
      plan.offsets = {dtype_bytes(info.out.dtype, routine.view_offset(problem, strides))};
    } else if (layer.type == "concat" && one_schema && layer.post.empty()) {
      plan.offsets = concat_offsets(problem, info.out);
      if (!plan.offsets.empty()) plan.kind = MemoryStep::Kind::gather;
    }
    if (plan.kind != MemoryStep::Kind::compute) plan.inplace = -1;
  }

  void add_step(MemoryStep& plan, std::unique_ptr<const Prepared> prepared, int layer, const std::string& name,
                const std::string& descriptor) {
    if (prepared != nullptr) plan.workspace = prepared->workspace().shared;
    Step step;
    step.layer = layer;
    step.name = name;
    step.descriptor = descriptor;
    step.prepared = std::move(prepared);
    step.in = plan.reads;
    step.outs = plan.writes;
    program_.steps.push_back(std::move(step));
    draft_.plan_steps.push_back(std::move(plan));
  }

  std::shared_ptr<const Packed> pack(const RoutineChoice& choice, const Problem& problem, const std::string& where) {
    const auto start = std::chrono::steady_clock::now();
    auto packed = guarded(where, [&] { return cache_.get(choice, problem); });
    packing_ += std::chrono::steady_clock::now() - start;
    if (packed != nullptr && seen_packed_.insert(packed.get()).second) {
      program_.stats.packed_bytes += packed->bytes();
      program_.packings.push_back(packed);
    }
    return packed;
  }

  static std::unique_ptr<const Prepared> prepare(const Routine& routine, const Tuning& tuning, const Problem& problem,
                                                 std::shared_ptr<const Packed> packed, const std::string& where) {
    return guarded(where, [&] { return routine.prepare(problem, tuning, std::move(packed)); });
  }

  void add_outputs() {
    for (size_t k = 0; k < graph_.outputs().size(); ++k) {
      const int blob = graph_.outputs()[k];
      const Schema& schema = graph_.output_schemas()[k];
      const int value = need_value(blob, schema, "output " + std::to_string(k));
      draft_.outputs.push_back(value);
      draft_.updating_outputs.push_back(updating_blobs_.contains(blob));
      program_.output_descs.push_back(graph_.blob(blob).desc);
      program_.output_schemas.push_back(schema);
      if (draft_.plan_values[at(value)].output < 0) draft_.plan_values[at(value)].output = static_cast<int>(k);
    }
  }

  const Graph& graph_;
  const Assignment& assignment_;
  const int threads_;
  PackedCache& cache_;
  Layer adapt_layer_;
  Draft draft_;
  Program& program_ = draft_.program;
  std::vector<Value>& values_ = program_.values;
  std::unique_ptr<const FusedLayers> fused_;
  std::vector<std::vector<std::pair<Schema, int>>> values_of_blob_;
  std::vector<bool> adapt_used_;
  std::vector<std::shared_ptr<const Packed>> ahead_;  // keeps packings alive until steps hold them
  std::chrono::steady_clock::duration packing_{};
  std::set<const Packed*> seen_packed_;
  std::set<int> updating_blobs_;
};

}  // namespace

Program build_program(const Graph& graph, const Assignment& assignment, int threads, PackedCache& cache) {
  return Builder(graph, assignment, threads, cache).build();
}

}  // namespace softneuro
