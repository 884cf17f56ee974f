// softneuro._C.tune and Plan.
#include "tune/tuner.h"

#include <optional>

#include "ext/bindings/bindings.h"
#include "ext/bindings/plan.h"
#include "tune/plan/near_shapes.h"
#include "tune/plan/plan_graph.h"
#include "tune/plan/planner.h"
#include "tune/records/cost_keys.h"

namespace softneuro::bindings {

BoundPlan BoundPlan::carry_over(const Graph& graph, int threads) const {
  BoundPlan other{graph.structural_hash(), settings, {}};
  other.settings.threads = threads;
  other.result = softneuro::carry_over(graph, descriptors(result), other.settings);
  return other;
}

Assignment BoundPlan::assignment_for(const Graph& graph, int threads) const {
  if (graph.structural_hash() == graph_hash && threads == settings.threads) return result.assignment;
  return carry_over(graph, threads).result.assignment;
}

namespace {

BoundPlan tune_graph(const Graph& graph, const Options& options, int threads, const py::object& progress) {
  Progress report;
  if (!progress.is_none()) {
    report = [&](int done, int total) {
      const py::gil_scoped_acquire gil;
      progress(done, total);
    };
  }
  const py::gil_scoped_release release;
  return {graph.structural_hash(), tune_settings(graph, options, threads),
          make_plan(graph, options, threads, shared_cost_db(), own_pool(threads), report)};
}

std::optional<BoundPlan> load_bound_plan(const Graph& graph, const Options& options, int threads) {
  auto known = load_plan(graph, options, threads);
  if (!known) return std::nullopt;
  return BoundPlan{graph.structural_hash(), tune_settings(graph, options, threads), std::move(*known)};
}

}  // namespace

void bind_tuner(py::module_& m) {
  py::class_<LayerReport>(m, "LayerReport", "What a plan chose for one layer.")
      .def_readonly("name", &LayerReport::name)
      .def_readonly("type", &LayerReport::type)
      .def_readonly("descriptor", &LayerReport::descriptor)
      .def_readonly("seconds", &LayerReport::seconds, "Seconds of the routine alone.")
      .def_readonly("regret", &LayerReport::regret,
                    "Seconds that the best plan without this routine costs more; inf if there is no other.")
      .def_readonly("measured", &LayerReport::measured, "False where `seconds` only ranks routines, by rules.")
      .def_readonly("in_floats", &LayerReport::in_floats,
                    "Why it computes with floats what is quantized; empty where it does not.")
      .def_readonly("sparse_s", &LayerReport::sparse_s,
                    "Seconds of the fastest routine measured that makes use of zeros in weights; inf if there is none.")
      .def_readonly("dense_s", &LayerReport::dense_s, "The same of all others.");

  py::class_<BoundPlan>(m, "Plan", "The routine of every layer and the conversions between them.")
      .def_readonly("graph_hash", &BoundPlan::graph_hash)
      .def_property_readonly("threads", [](const BoundPlan& plan) { return plan.settings.threads; })
      .def_property_readonly("layers", [](const BoundPlan& plan) { return plan.result.layers; })
      .def_property_readonly(
          "adapts",
          [](const BoundPlan& plan) {
            py::list list;
            for (size_t i = 0; i < plan.result.assignment.adapts.size(); ++i) {
              const AdaptChoice& adapt = plan.result.assignment.adapts[i];
              list.append(py::make_tuple(adapt.blob, adapt.from.str(), adapt.to.str(), plan.result.adapt_seconds[i]));
            }
            return list;
          },
          "(blob, from, to, seconds) of each conversion.")
      .def_property_readonly(
          "grids",
          [](const BoundPlan& plan) {
            py::list list;
            const auto& grids = plan.result.assignment.grids;
            for (size_t b = 0; grids != nullptr && b < grids->blobs().size(); ++b) {
              const auto& grid = grids->blobs()[b];
              if (grid != nullptr) list.append(py::make_tuple(b, grid->scales[0], grid->zero_points[0]));
            }
            return list;
          },
          "(blob, scale, zero point) by which the plan stores blobs of reals where it has them in bytes.")
      .def_property_readonly(
          "corrected",
          [](const BoundPlan& plan) {
            const auto& grids = plan.result.assignment.grids;
            return grids != nullptr ? grids->learnt().corrected : std::set<std::pair<int, std::string>>();
          },
          "(layer, form) of those whose bias makes up for rounded weights where the plan has that form.")
      .def_property_readonly("predicted_s", [](const BoundPlan& plan) { return plan.result.predicted_s; })
      .def_property_readonly(
          "dense_s", [](const BoundPlan& plan) { return plan.result.dense_s; },
          "What the best plan that makes no use of zeros in weights is expected to take; 0 if that is not known.")
      .def_property_readonly(
          "best_s", [](const BoundPlan& plan) { return plan.result.best_s; },
          "The same of the best of all: predicted_s, unless another plan has proven faster as a whole.")
      .def_property_readonly(
          "lower_bound_s", [](const BoundPlan& plan) { return plan.result.lower_bound_s; },
          "No plan costs less under the measured costs.")
      .def_property_readonly(
          "memory",
          [](const BoundPlan& plan) {
            const TuneResult& result = plan.result;
            py::dict memory;
            memory["weights"] = result.weight_bytes;
            memory["packed"] = result.packed_bytes;
            memory["peak"] = result.peak_bytes;
            memory["limited"] = result.memory_limited;
            memory["fits"] = result.memory_fits;
            return memory;
          },
          "Bytes of the graph's weights, of the plan's packed ones as its routines foretell them, and of all that "
          "there "
          "is during a run (0 if max_memory does not bound that); whether max_memory changed the plan, and whether any "
          "plan keeps to it.")
      .def_property_readonly(
          "foretold_error", [](const BoundPlan& plan) { return plan.result.foretold_error; },
          "Relative L2 of the worst output, as a calibration foretells it; 0 for a plan without grids of its own.")
      .def_property_readonly("exact", [](const BoundPlan& plan) { return plan.result.exact; })
      .def_property_readonly(
          "integrated_s", [](const BoundPlan& plan) { return plan.result.integrated_s; },
          "The plan timed as a whole; 0 if it was not.")
      .def(
          "text",
          [](const BoundPlan& plan, const Graph& graph) {
            PlanFile file;
            file.set(to_plan(graph, plan.result, plan.settings));
            return file.format();
          },
          py::arg("graph"), "The plan as a plan file holds it.")
      .def(
          "carry_over", &BoundPlan::carry_over, py::arg("graph"), py::arg("threads"),
          py::call_guard<py::gil_scoped_release>(),
          "The plan for the same model in other shapes: each layer keeps its routine where that accepts the new shape. "
          "Measures nothing. Raises Error if the numbers of layers differ.")
      .def(
          "save",
          [](const BoundPlan& plan, const std::string& path, const Graph& graph) {
            save_plan(graph, plan.result, plan.settings, path);
          },
          py::arg("path"), py::arg("graph"), py::call_guard<py::gil_scoped_release>(),
          "Adds the plan to a plan file, in place of one for the same graph, shapes, device and threads.")
      .def_property_readonly(
          "carried", [](const BoundPlan& plan) { return plan.result.carried; },
          "Whether it was carried over from other shapes, nothing measured.")
      .def_property_readonly("tuning_s", [](const BoundPlan& plan) { return plan.result.tuning_s; })
      .def_property_readonly(
          "stages",
          [](const BoundPlan& plan) {
            py::dict stages;
            for (const StageTime& stage : plan.result.stages) {
              stages[py::str(stage.name)] = py::make_tuple(stage.seconds, stage.times);
            }
            return stages;
          },
          "Where the time of tuning went: seconds of each stage, without those of the stages inside it, and how often "
          "it "
          "was entered. Empty if nothing was tuned.")
      .def_property_readonly(
          "counts",
          [](const BoundPlan& plan) {
            return std::map<std::string, int>{{"candidates", plan.result.candidates},
                                              {"measured", plan.result.measured},
                                              {"recalled", plan.result.recalled},
                                              {"guessed", plan.result.guessed}};
          },
          "How many costs there were, and where they came from.");

  m.def(
      "nearest_shapes",
      [](const Sizes& wanted, const std::vector<Sizes>& known) { return nearest_shapes(wanted, known); },
      py::arg("wanted"), py::arg("known"),
      "Index of the sizes that differ least from the wanted ones, in sum; None if there are none of their number.");
  m.def("load_plan", &load_bound_plan, py::arg("graph"), py::arg("options"), py::arg("threads"),
        py::call_guard<py::gil_scoped_release>(),
        "The plan that the file options.plan holds for exactly this graph, or None. Raises Error if the file is of "
        "another model or device.");
  m.def(
      "tune", &tune_graph, py::arg("graph"), py::arg("options"), py::arg("threads"), py::arg("progress") = py::none(),
      "Plans an optimised graph. progress(done, total) is called now and then. With options.plan, a plan of that file "
      "is taken as it is; a new one is added to it. Where options.tune forbids measuring, one for other shapes is "
      "carried over.");
}

}  // namespace softneuro::bindings
