// softneuro._C.tune and Plan.
#include "tune/tuner.h"

#include "ext/bindings/bindings.h"
#include "ext/bindings/plan.h"
#include "tune/cost_keys.h"
#include "tune/plan_graph.h"
#include "tune/planner.h"

namespace softneuro::bindings {

Assignment BoundPlan::assignment_for(const Graph& graph, int threads) const {
  if (graph.structural_hash() == graph_hash && threads == settings.threads) return result.assignment;
  TuneSettings other = settings;
  other.threads = threads;
  return carry_over(graph, descriptors(result), other).assignment;
}

namespace {

BoundPlan tune_graph(const Graph& graph, const Options& options, int threads, const py::object& progress) {
  BoundPlan plan;
  plan.graph_hash = graph.structural_hash();
  plan.settings = tune_settings(options, threads);
  Progress report;
  if (!progress.is_none()) {
    report = [&](int done, int total) {
      const py::gil_scoped_acquire gil;
      progress(done, total);
    };
  }
  const py::gil_scoped_release release;
  plan.result = make_plan(graph, options, threads, shared_cost_db(), own_pool(threads), report);
  return plan;
}

}  // namespace

void bind_tuner(py::module_& m) {
  py::class_<LayerReport>(m, "LayerReport", "What a plan chose for one layer.")
      .def_readonly("name", &LayerReport::name)
      .def_readonly("type", &LayerReport::type)
      .def_readonly("descriptor", &LayerReport::descriptor)
      .def_readonly("seconds", &LayerReport::seconds, "Of the routine alone.")
      .def_readonly("regret", &LayerReport::regret,
                    "Seconds that the best plan without this routine costs more; inf if there is no other.")
      .def_readonly("measured", &LayerReport::measured, "False if the time is a guess.");

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
      .def_property_readonly("predicted_s", [](const BoundPlan& plan) { return plan.result.predicted_s; })
      .def_property_readonly(
          "lower_bound_s", [](const BoundPlan& plan) { return plan.result.lower_bound_s; },
          "No plan costs less under the measured costs.")
      .def_property_readonly("exact", [](const BoundPlan& plan) { return plan.result.exact; })
      .def_property_readonly(
          "integrated_s", [](const BoundPlan& plan) { return plan.result.integrated_s; },
          "The plan timed as a whole; 0 if it was not.")
      .def(
          "text",
          [](const BoundPlan& plan, const Graph& graph) {
            PlanFile file;
            file.set(to_plan(graph, plan.result, plan.settings.threads));
            return file.format();
          },
          py::arg("graph"), "The plan as a plan file holds it.")
      .def_property_readonly("tuning_s", [](const BoundPlan& plan) { return plan.result.tuning_s; })
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
      "tune", &tune_graph, py::arg("graph"), py::arg("options"), py::arg("threads"), py::arg("progress") = py::none(),
      "Plans an optimised graph. progress(done, total) is called now and then. With options.plan, a plan of that file "
      "is taken as it is; a new one is added to it.");
}

}  // namespace softneuro::bindings
