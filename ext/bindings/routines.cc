// The registry as Python sees it, and single routines run under guard for the tests.
#include <cstring>

#include "base/arena.h"
#include "base/error.h"
#include "ext/bindings/one_layer.h"
#include "layers/registry.h"

namespace softneuro::bindings {
namespace {

// Physical index of a logical row-major position: the plainest statement of the layouts, to check the fast ones by.
int64_t physical_index(const Shape& shape, const Layout& layout, int64_t position) {
  const int rank = shape.rank();
  if (layout.kind == Layout::Kind::nchw || rank < 2) return position;
  const int64_t inner = shape.product(2, rank), c = shape[1];
  const int64_t pixel = position % inner, channel = position / inner % c, n = position / (inner * c);
  if (layout.kind == Layout::Kind::nhwc) return (n * inner + pixel) * c + channel;
  const int64_t block = layout.block, blocks = (c + block - 1) / block;
  return ((n * blocks + channel / block) * inner + pixel) * block + channel % block;
}

// A blob between two guard zones; its elements start as NaN, so that what a routine leaves unwritten shows.
class GuardedBlob {
 public:
  GuardedBlob(const Shape& shape, const Schema& schema)
      : shape_(shape),
        schema_(schema),
        elements_(physical_elements(shape, schema.layout)),
        memory_(static_cast<size_t>(elements_ + 2 * guard) * sizeof(float)) {
    std::fill_n(data() - guard, elements_ + 2 * guard, guard_value());
  }

  TensorView view() { return dense_view(data(), shape_, schema_); }

  void fill(const float* from) {
    std::fill_n(data(), elements_, 0.0F);
    for (int64_t i = 0; i < shape_.elements(); ++i) data()[physical_index(shape_, schema_.layout, i)] = from[i];
  }

  // Throws Error if a guard or a padding lane was touched.
  void read(float* to, const std::string& where) {
    double padding = 0;
    for (int64_t i = 0; i < elements_; ++i) padding += data()[i] == 0 ? 0 : 1;
    for (int64_t i = 0; i < shape_.elements(); ++i) {
      to[i] = data()[physical_index(shape_, schema_.layout, i)];
      padding -= to[i] == 0 ? 0 : 1;
    }
    if (padding != 0) throw Error("padding lanes are not zero", where);
    check_guards(where);
  }

  void check_guards(const std::string& where) {
    for (int64_t i = 0; i < guard; ++i) {
      if (!is_guard(data()[-1 - i]) || !is_guard(data()[elements_ + i])) throw Error("wrote outside a blob", where);
    }
  }

 private:
  static constexpr int64_t guard = 64;  // keeps the data 64-byte aligned
  static constexpr uint32_t guard_bits = 0x7fc0beef;
  static float guard_value() {
    float value = 0;
    std::memcpy(&value, &guard_bits, sizeof value);
    return value;
  }
  static bool is_guard(float value) { return std::memcmp(&value, &guard_bits, sizeof value) == 0; }
  float* data() { return reinterpret_cast<float*>(memory_.data()) + guard; }

  Shape shape_;
  Schema schema_;
  int64_t elements_;
  AlignedBuffer memory_;
};

py::array run_routine(const std::string& type, const py::dict& attrs, const py::dict& weights,
                      const std::vector<FloatArray>& inputs, const std::string& descriptor, const py::dict& post,
                      int threads) {
  std::vector<py::tuple> shapes;
  for (const FloatArray& input : inputs) shapes.push_back(py::cast<py::tuple>(input.attr("shape")));
  const OneLayer one(type, attrs, weights, shapes, post);
  const Problem problem = one.problem(threads);
  const RoutineChoice choice = find_routine(descriptor);
  const Refusal refusal = choice.routine->check(problem);
  if (!refusal.accepted()) throw Error("declines: " + refusal.reason(), descriptor);

  std::vector<GuardedBlob> blobs;
  for (size_t i = 0; i < inputs.size(); ++i) {
    blobs.emplace_back(problem.in[i].shape, choice.routine->input_schema(problem, static_cast<int>(i)));
    blobs.back().fill(inputs[i].data());
  }
  GuardedBlob out(problem.out.shape, choice.routine->info().out);
  auto result = new_array<float>(problem.out.shape);
  if (choice.routine->info().view) {
    const TensorView in = blobs[0].view();
    std::memcpy(out.view().data, in.f32() + choice.routine->view_offset(problem),
                static_cast<size_t>(physical_elements(problem.out.shape, choice.routine->info().out.layout)) * 4);
  } else {
    const auto prepared = choice.routine->prepare(problem, choice.tuning, choice.routine->pack(problem, choice.tuning));
    std::vector<TensorView> views;
    for (GuardedBlob& blob : blobs) views.push_back(blob.view());
    const AlignedBuffer memory(prepared->workspace().bytes());
    const Workspace workspace(prepared->workspace(), memory.data());
    const ParallelFor parallel_for = own_pool(threads);
    prepared->run({views.data(), out.view(), workspace, parallel_for});
    const bool on_residual = problem.layer->post.residual && prepared->works_on_residual();
    const int over = on_residual ? static_cast<int>(views.size()) - 1 : choice.routine->info().inplace_input;
    if (over >= 0 && problem.in[static_cast<size_t>(over)].shape == problem.out.shape) {
      const TensorView in_place = views[static_cast<size_t>(over)];
      prepared->run({views.data(), in_place, workspace, parallel_for});
      const auto bytes =
          static_cast<size_t>(physical_elements(problem.out.shape, choice.routine->info().out.layout)) * 4;
      if (std::memcmp(in_place.data, out.view().data, bytes) != 0)
        throw Error("the result differs in place", descriptor);
    }
  }
  for (GuardedBlob& blob : blobs) blob.check_guards(descriptor);
  out.read(result.mutable_data(), descriptor);
  return result;
}

py::list accepting(const std::string& type, const py::dict& attrs, const py::dict& weights,
                   const std::vector<py::tuple>& shapes, const py::dict& post, int threads) {
  const OneLayer one(type, attrs, weights, shapes, post);
  const Problem problem = one.problem(threads);
  py::list list;
  for (const Routine* routine : accepting_routines(problem)) {
    for (const Tuning& tuning : routine->tunings(problem)) list.append(routine->descriptor(tuning));
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
                                       const py::dict& post) {
  const OneLayer one(type, attrs, weights, shapes, post);
  const Problem problem = one.problem(1);
  const RoutineChoice choice = find_routine(descriptor);
  const auto packed = choice.routine->info().view ? nullptr : choice.routine->pack(problem, choice.tuning);
  return {choice.routine->packed_bytes(problem, choice.tuning), packed == nullptr ? 0 : packed->bytes()};
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
              "Runs one routine on row-major arrays (converted to its schema and back by plain loops). Raises Error if "
              "it declines, writes outside its output or leaves a padding lane that is not zero.");
  testing.def("accepting", &accepting, py::arg("type"), py::arg("attrs"), py::arg("weights"), py::arg("shapes"),
              py::arg("post") = py::dict(), py::arg("threads") = 1,
              "Descriptors of all routines and tunings that this machine can run and that accept the layer.");
  testing.def("expected_error", &expected_error, py::arg("type"), py::arg("attrs"), py::arg("weights"),
              py::arg("shapes"), py::arg("descriptor"), "Relative L2 error that a routine expects of its result.");
  testing.def("packed_bytes", &packed_bytes, py::arg("type"), py::arg("attrs"), py::arg("weights"), py::arg("shapes"),
              py::arg("descriptor"), py::arg("post") = py::dict(), "(foretold, actual) bytes of a routine's packing.");
  testing.def("refusals", &refusals, py::arg("type"), py::arg("attrs"), py::arg("weights"), py::arg("shapes"),
              py::arg("post") = py::dict(), py::arg("threads") = 1, "Reason by descriptor of those that decline.");
}

}  // namespace softneuro::bindings
