// softneuro._C.tune and Plan.
#include "tune/tuner.h"

#include "ext/bindings/bindings.h"
#include "ext/bindings/plan.h"
#include "tune/cost_keys.h"

namespace softneuro::bindings {

Assignment BoundPlan::assignment_for(const Graph& graph, int threads) const {
  if (graph.structural_hash() == graph_hash && threads == settings.threads) return result.assignment;
  std::vector<std::string> descriptors;
  for (const LayerReport& layer : result.layers) descriptors.push_back(layer.descriptor);
  TuneSettings other = settings;
  other.threads = threads;
  return carry_over(graph, descriptors, other).assignment;
}

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
      "tune",
      [](const Graph& graph, const std::string& mode, const std::vector<std::string>& schemas, double max_error,
         bool strict_nonfinite, int threads, double time_budget_s, const std::string& cache_dir,
         const py::object& progress) {
        BoundPlan plan;
        plan.graph_hash = graph.structural_hash();
        plan.settings.limits = {schemas, max_error, strict_nonfinite};
        plan.settings.mode = mode == "off" ? TuneMode::off : mode == "cached" ? TuneMode::cached : TuneMode::profile;
        plan.settings.threads = threads;
        plan.settings.time_budget_s = time_budget_s;
        const ParallelFor pool = own_pool(threads);
        const Progress report = [&](int done, int total) {
          const py::gil_scoped_acquire gil;
          progress(done, total);
        };
        const py::gil_scoped_release release;
        plan.result =
            tune(graph, plan.settings, shared_cost_db(cache_dir), pool, progress.is_none() ? Progress{} : report);
        return plan;
      },
      py::arg("graph"), py::kw_only(), py::arg("mode") = "profile",
      py::arg("schemas") = std::vector<std::string>{"float32"}, py::arg("max_error") = 1e-4,
      py::arg("strict_nonfinite") = false, py::arg("threads") = 1, py::arg("time_budget_s") = 30.0,
      py::arg("cache_dir") = "", py::arg("progress") = py::none(),
      "Plans an optimised graph. progress(done, total) is called now and then.");
}

}  // namespace softneuro::bindings
