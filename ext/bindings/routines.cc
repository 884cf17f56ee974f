// The registry as Python sees it, and single routines run under guard for the tests.
#include <cmath>
#include <cstring>
#include <type_traits>

#include "base/arena.h"
#include "base/error.h"
#include "ext/bindings/one_layer.h"
#include "layers/contract/registry.h"

namespace softneuro::bindings {
namespace {

// Physical index of a logical row-major position: the plainest statement of the layouts, to check the fast ones by.
int64_t physical_index(const TensorView& view, int64_t position) {
  const Shape& shape = view.shape;
  const Layout& layout = view.schema.layout;
  const int rank = shape.rank();
  if (layout.is_blocked()) {
    const int64_t inner = shape.product(2, rank), c = shape[1];
    const int64_t pixel = position % inner, channel = position / inner % c, n = position / (inner * c);
    const int64_t block = layout.block, blocks = (c + block - 1) / block;
    return ((n * blocks + channel / block) * inner + pixel) * block + channel % block;
  }
  if (layout.is_tiled()) {
    const int64_t plane = shape[2] * shape[3], x = position % shape[3], y = position / shape[3] % shape[2];
    const TileGrid grid = tile_grid(shape[2], shape[3], layout.block);
    return position / plane * grid.h * grid.w * layout.block + grid.at(y, x);
  }
  int64_t index = 0;
  for (int axis = rank; axis-- > 0; position /= shape[axis]) {
    index += position % shape[axis] * view.strides[static_cast<size_t>(axis)];
  }
  return index;
}

// Strides of a strided layout: further apart than dense.
Strides test_strides(const Shape& shape, const Layout& layout) {
  Strides strides = dense_strides(shape, layout);
  if (!layout.strided) return strides;
  int64_t factor = 2;
  for (int64_t& stride : strides) {
    if (stride > 1) stride *= factor;
  }
  return strides;
}

// A blob between two guard zones; its elements start as NaN, or all bits set, so that what a routine leaves unwritten
// shows.
class GuardedBlob {
 public:
  GuardedBlob(const TensorDesc& desc, const Schema& schema)
      : quantization_(desc.quantization),
        view_{nullptr, desc.shape, schema, test_strides(desc.shape, schema.layout)},
        bytes_(dtype_bytes(schema.dtype, spanned_elements(desc.shape, view_.strides, schema.layout))),
        memory_(bytes_ + 2 * guard) {
    std::memset(memory_.data(), guard_byte, memory_.size());
    view_.data = static_cast<std::byte*>(memory_.data()) + guard;
    std::memset(view_.data, 0xff, bytes_);
  }

  const TensorView& view() const { return view_; }
  size_t bytes() const { return bytes_; }

  void fill(const float* from) {
    std::memset(view_.data, 0, bytes_);
    with_dtype(view_.schema.dtype, [&](auto kind) {
      using T = decltype(kind);
      for (int64_t i = 0; i < view_.shape.elements(); ++i) {
        T& to = view_.as<T>()[physical_index(view_, i)];
        if constexpr (std::is_same_v<T, QInt8>) {
          const float steps = std::nearbyint(from[i] / quantization_->scales[0]);
          to.bits = static_cast<uint8_t>(static_cast<int>(steps) + quantization_->zero_points[0]);
        } else {
          to = element_from<T>(from[i]);
        }
      }
    });
  }

  void read(float* to) const { read_view(view_, quantization_.get(), to); }
  // Quantized elements as the reals that they stand for.
  static void read_view(const TensorView& view, const Quantization* q, float* to) {
    with_dtype(view.schema.dtype, [&](auto kind) {
      using T = decltype(kind);
      for (int64_t i = 0; i < view.shape.elements(); ++i) {
        const T element = view.as<T>()[physical_index(view, i)];
        if constexpr (std::is_same_v<T, QInt8>) {
          const int stored = q->is_signed() ? static_cast<int8_t>(element.bits) : element.bits;
          to[i] = static_cast<float>(stored - q->zero_points[0]) * q->scales[0];
        } else {
          to[i] = element_value(element);
        }
      }
    });
  }

  // Throws Error if a guard or a padding lane was touched.
  void check(const std::string& where) const {
    const auto* const all = static_cast<const unsigned char*>(memory_.data());
    for (size_t i = 0; i < guard; ++i) {
      if (all[i] != guard_byte || all[guard + bytes_ + i] != guard_byte) throw Error("wrote outside a blob", where);
    }
    if (!view_.schema.layout.whole_images()) return;
    with_dtype(view_.schema.dtype, [&](auto kind) {
      using T = decltype(kind);
      const T zero{};
      const auto count = static_cast<int64_t>(bytes_ / sizeof(T));
      std::vector<char> owned(static_cast<size_t>(count), 0);
      for (int64_t i = 0; i < view_.shape.elements(); ++i) owned[static_cast<size_t>(physical_index(view_, i))] = 1;
      for (int64_t i = 0; i < count; ++i) {
        if (!owned[static_cast<size_t>(i)] && element_value(view_.as<T>()[i]) != element_value(zero))
          throw Error("padding lanes are not zero", where);
      }
    });
  }

 private:
  static constexpr size_t guard = 256;  // keeps the data aligned
  static constexpr unsigned char guard_byte = 0xa5;

  std::shared_ptr<const Quantization> quantization_;
  TensorView view_;
  size_t bytes_;
  AlignedBuffer memory_;
};

void run_in_place(const Problem& problem, const Prepared& prepared, int over, std::vector<TensorView>& in,
                  const std::vector<TensorView>& outs, const Workspace& workspace, const ParallelFor& parallel_for,
                  size_t bytes, const std::string& descriptor) {
  const TensorView in_place = in[static_cast<size_t>(over)];
  if (problem.in[static_cast<size_t>(over)].shape != problem.out().shape || in_place.schema != outs[0].schema) return;
  std::vector<TensorView> over_outs = outs;
  over_outs[0] = in_place;
  prepared.run({in.data(), over_outs.data(), workspace, parallel_for});
  if (std::memcmp(in_place.data, outs[0].data, bytes) != 0) throw Error("the result differs in place", descriptor);
}

py::object run_routine(const std::string& type, const py::dict& attrs, const py::dict& weights,
                       const std::vector<FloatArray>& inputs, const std::string& descriptor, const py::dict& post,
                       int threads, const std::vector<py::object>& dtypes) {
  std::vector<py::tuple> shapes;
  for (const FloatArray& input : inputs) shapes.push_back(py::cast<py::tuple>(input.attr("shape")));
  const OneLayer one(type, attrs, weights, shapes, post, dtypes);
  const Problem problem = one.problem(threads);
  const RoutineChoice choice = find_routine(descriptor);
  const Routine& routine = *choice.routine;
  const Refusal refusal = accepts(routine, problem);
  if (!refusal.accepted()) throw Error("declines: " + refusal.reason(), descriptor);

  std::vector<GuardedBlob> blobs, outs;
  std::vector<TensorView> views, out_views;
  for (size_t i = 0; i < inputs.size(); ++i) {
    blobs.emplace_back(problem.in[i], routine.input_schema(problem, static_cast<int>(i)));
    blobs.back().fill(inputs[i].data());
    views.push_back(blobs.back().view());
  }
  py::list results;
  const auto add_result = [&](size_t k) {
    auto result = new_array<float>(problem.outs[k].shape);
    results.append(result);
    return result.mutable_data();
  };
  if (routine.info().view) {
    const TensorView in = blobs[0].view();
    const Strides strides = routine.view_strides(problem, in.strides);
    const TensorView out{in.at(routine.view_offset(problem, in.strides)), problem.out().shape, routine.info().out,
                         strides};
    GuardedBlob::read_view(out, problem.out().quantization.get(), add_result(0));
  } else {
    for (size_t k = 0; k < problem.outs.size(); ++k) {
      outs.emplace_back(problem.outs[k], routine.output_schema(problem, static_cast<int>(k)));
      out_views.push_back(outs.back().view());
    }
    const auto prepared = routine.prepare(problem, choice.tuning, routine.packed(problem, choice.tuning));
    const AlignedBuffer memory(prepared->workspace().bytes());
    const Workspace workspace(prepared->workspace(), memory.data());
    const ParallelFor parallel_for = own_pool(threads);
    prepared->run({views.data(), out_views.data(), workspace, parallel_for});
    const bool on_residual = problem.layer->post.residual && prepared->works_on_residual();
    const int over = on_residual ? static_cast<int>(views.size()) - 1 : routine.info().inplace_input;
    if (over >= 0) {
      run_in_place(problem, *prepared, over, views, out_views, workspace, parallel_for, outs[0].bytes(), descriptor);
    }
    for (size_t k = 0; k < outs.size(); ++k) {
      outs[k].read(add_result(k));
      outs[k].check(descriptor);
    }
  }
  for (const GuardedBlob& blob : blobs) blob.check(descriptor);
  if (results.size() == 1) return results[0];
  return py::tuple(results);
}

py::list accepting(const std::string& type, const py::dict& attrs, const py::dict& weights,
                   const std::vector<py::tuple>& shapes, const py::dict& post, int threads,
                   const std::vector<py::object>& dtypes) {
  const OneLayer one(type, attrs, weights, shapes, post, dtypes);
  const Problem problem = one.problem(threads);
  py::list list;
  for (const Routine* routine : accepting_routines(problem)) {
    for (const Tuning& tuning : tunings(*routine, problem)) list.append(routine->descriptor(tuning));
  }
  return list;
}

double expected_error(const std::string& type, const py::dict& attrs, const py::dict& weights,
                      const std::vector<py::tuple>& shapes, const std::string& descriptor) {
  const OneLayer one(type, attrs, weights, shapes, py::dict());
  const RoutineChoice choice = find_routine(descriptor);
  return choice.routine->expected_error(one.problem(1), choice.tuning);
}

// (foretold, actual) bytes of a routine's packing.
std::pair<size_t, size_t> packed_bytes(const std::string& type, const py::dict& attrs, const py::dict& weights,
                                       const std::vector<py::tuple>& shapes, const std::string& descriptor,
                                       const py::dict& post, const std::vector<py::object>& dtypes) {
  const OneLayer one(type, attrs, weights, shapes, post, dtypes);
  const Problem problem = one.problem(1);
  const RoutineChoice choice = find_routine(descriptor);
  const auto packed = choice.routine->packed(problem, choice.tuning);
  return {choice.routine->packed_bytes(problem, choice.tuning), packed == nullptr ? 0 : packed->bytes()};
}

// Sections of a routine's packing: (name, dtype, elements, of them the layer's own, bytes before it).
py::list packing(const std::string& type, const py::dict& attrs, const py::dict& weights,
                 const std::vector<py::tuple>& shapes, const std::string& descriptor, const py::dict& post,
                 const std::vector<py::object>& dtypes) {
  const OneLayer one(type, attrs, weights, shapes, post, dtypes);
  const RoutineChoice choice = find_routine(descriptor);
  py::list list;
  const Packing declared = choice.routine->packing(one.problem(1), choice.tuning);
  for (const Packing::Section& section : declared.sections()) {
    list.append(py::make_tuple(section.name, std::string(dtype_name(section.dtype)), section.count, section.values,
                               section.offset));
  }
  return list;
}

py::dict refusals(const std::string& type, const py::dict& attrs, const py::dict& weights,
                  const std::vector<py::tuple>& shapes, const py::dict& post, int threads) {
  const OneLayer one(type, attrs, weights, shapes, post);
  std::vector<std::pair<std::string, std::string>> reasons;
  accepting_routines(one.problem(threads), &reasons);
  py::dict result;
  for (const auto& [descriptor, reason] : reasons) result[py::str(descriptor)] = reason;
  return result;
}

py::list registry_list() {
  py::list list;
  for (const LayerDef* def : layer_defs()) {
    for (const auto& routine : routines(def->type)) {
      const RoutineInfo& info = routine->info();
      py::dict entry;
      entry["layer"] = def->type;
      entry["descriptor"] = routine->descriptor();
      entry["isa"] = std::string(isa_name(info.isa));
      entry["in"] = info.in.str();
      entry["out"] = info.out.str();
      entry["params"] = routine->param_names();
      entry["spreads_nonfinite"] = info.spreads_nonfinite;
      entry["error"] = std::string(error_class_name(info.error));
      entry["fallback"] = info.fallback;
      entry["exploits_sparsity"] = info.exploits_sparsity;
      entry["source_hash"] = routine->source_hash();
      entry["available"] = isa_available(info.isa);
      list.append(entry);
    }
  }
  return list;
}

}  // namespace

void bind_routines(py::module_& m) {
  m.def("registry", &registry_list, "One dictionary per routine: layer, descriptor, isa, in, out, params, ...");
  auto testing = m.def_submodule("testing", "Single routines, run between guard zones.");
  testing.def("run_routine", &run_routine, py::arg("type"), py::arg("attrs"), py::arg("weights"), py::arg("inputs"),
              py::arg("descriptor"), py::arg("post") = py::dict(), py::arg("threads") = 1,
              py::arg("dtypes") = std::vector<py::object>(),
              "Runs one routine on row-major float32 arrays, converted to its schemas and back by plain loops; a tuple "
              "if it has several outputs. `dtypes` says what values the inputs have, float32 by default. Raises Error "
              "if it declines, writes outside its output or leaves a padding lane that is not zero.");
  testing.def("accepting", &accepting, py::arg("type"), py::arg("attrs"), py::arg("weights"), py::arg("shapes"),
              py::arg("post") = py::dict(), py::arg("threads") = 1, py::arg("dtypes") = std::vector<py::object>(),
              "Descriptors of all routines and tunings that this machine can run and that accept the layer.");
  testing.def("expected_error", &expected_error, py::arg("type"), py::arg("attrs"), py::arg("weights"),
              py::arg("shapes"), py::arg("descriptor"), "Relative L2 error that a routine expects of its result.");
  testing.def("packed_bytes", &packed_bytes, py::arg("type"), py::arg("attrs"), py::arg("weights"), py::arg("shapes"),
              py::arg("descriptor"), py::arg("post") = py::dict(), py::arg("dtypes") = std::vector<py::object>(),
              "(foretold, actual) bytes of a routine's packing.");
  testing.def("packing", &packing, py::arg("type"), py::arg("attrs"), py::arg("weights"), py::arg("shapes"),
              py::arg("descriptor"), py::arg("post") = py::dict(), py::arg("dtypes") = std::vector<py::object>(),
              "Sections of a routine's packing: (name, dtype, elements, of them the layer's own, bytes before it).");
  testing.def("refusals", &refusals, py::arg("type"), py::arg("attrs"), py::arg("weights"), py::arg("shapes"),
              py::arg("post") = py::dict(), py::arg("threads") = 1, "Reason by descriptor of those that decline.");
}

}  // namespace softneuro::bindings
