// Routine selection over plain numbers.
#include "ext/bindings/bindings.h"
#include "tune/search/dprs.h"
#include "tune/search/dprs_labels.h"
#include "tune/search/memory_limit.h"

namespace softneuro::bindings {

void bind_dprs(py::module_& m) {
  py::class_<DprsLabel>(m, "DprsLabel",
                        "One way to compute a layer: cost and the schema of each input and output slot.")
      .def(py::init<double, std::vector<int>, std::vector<int>>(), py::arg("cost"), py::arg("inputs"),
           py::arg("outputs"))
      .def_readwrite("cost", &DprsLabel::cost)
      .def_readwrite("inputs", &DprsLabel::in)
      .def_readwrite("outputs", &DprsLabel::out);
  py::class_<DprsLayer>(m, "DprsLayer", "A layer: blob ids of its input and output slots, and its labels.")
      .def(py::init<std::vector<int>, std::vector<int>, std::vector<DprsLabel>>(), py::arg("inputs"),
           py::arg("outputs"), py::arg("labels"))
      .def_readwrite("inputs", &DprsLayer::inputs)
      .def_readwrite("outputs", &DprsLayer::outputs)
      .def_readwrite("labels", &DprsLayer::labels);
  py::class_<DprsCover>(m, "DprsCover", "A layer's part in a group.")
      .def(py::init<int, std::vector<int>, std::vector<int>>(), py::arg("layer"), py::arg("inputs"), py::arg("outputs"))
      .def_readwrite("layer", &DprsCover::layer)
      .def_readwrite("inputs", &DprsCover::in)
      .def_readwrite("outputs", &DprsCover::out);
  py::class_<DprsGroup>(m, "DprsGroup", "A candidate that computes several layers at once.")
      .def(py::init<double, std::vector<DprsCover>>(), py::arg("cost"), py::arg("covers"))
      .def_readwrite("cost", &DprsGroup::cost)
      .def_readwrite("covers", &DprsGroup::covers);
  py::class_<DprsLimits>(m, "DprsLimits", "When to stop solving exactly, and when to stop searching.")
      .def(py::init<>())
      .def_readwrite("max_table", &DprsLimits::max_table)
      .def_readwrite("max_entries", &DprsLimits::max_entries)
      .def_readwrite("mini_table", &DprsLimits::mini_table)
      .def_readwrite("max_nodes", &DprsLimits::max_nodes)
      .def_readwrite("time_limit_s", &DprsLimits::time_limit_s);
  py::class_<DprsProblem>(m, "DprsProblem", "A routine selection problem; see csrc/tune/search/dprs.h for its meaning.")
      .def(py::init([](int schemas, int blobs, std::vector<DprsLayer> layers, std::vector<DprsGroup> groups,
                       std::vector<std::vector<double>> adapts,
                       const std::vector<std::pair<int, std::vector<int>>>& inputs,
                       const std::vector<std::pair<int, int>>& outputs) {
             DprsProblem problem{schemas, blobs, std::move(layers), std::move(groups), std::move(adapts), {}, {}};
             for (const auto& [blob, available] : inputs) problem.inputs.push_back({blob, available});
             for (const auto& [blob, schema] : outputs) problem.outputs.push_back({blob, schema});
             return problem;
           }),
           py::arg("schemas"), py::arg("blobs"), py::arg("layers"), py::arg("groups"), py::arg("adapts"),
           py::arg("inputs"), py::arg("outputs"));
  py::class_<DprsStats>(m, "DprsStats", "How large the problem was.")
      .def_readonly("variables", &DprsStats::variables)
      .def_readonly("largest_table", &DprsStats::largest_table)
      .def_readonly("table_entries", &DprsStats::table_entries)
      .def_readonly("nodes", &DprsStats::nodes);
  py::class_<DprsResult>(m, "DprsResult", "A plan of a DprsProblem and what is known about it.")
      .def_property_readonly("choices",
                             [](const DprsResult& result) {
                               std::vector<std::pair<int, int>> choices;
                               for (const DprsChoice& c : result.choices) choices.emplace_back(c.label, c.group);
                               return choices;
                             })
      .def_property_readonly("adapts",
                             [](const DprsResult& result) {
                               std::vector<std::tuple<int, int, int, double>> adapts;
                               for (const DprsAdapt& a : result.adapts)
                                 adapts.emplace_back(a.blob, a.from, a.to, a.cost);
                               return adapts;
                             })
      .def_readonly("cost", &DprsResult::cost)
      .def_readonly("lower_bound", &DprsResult::lower_bound)
      .def_readonly("exact", &DprsResult::exact)
      .def_readonly("label_marginals", &DprsResult::label_marginals)
      .def_readonly("group_marginals", &DprsResult::group_marginals)
      .def_readonly("regrets", &DprsResult::regrets)
      .def_readonly("stats", &DprsResult::stats)
      .def_property_readonly("gap", &DprsResult::gap);
  m.def("dprs_solve", &dprs_solve, py::arg("problem"), py::arg("limits") = DprsLimits{},
        py::call_guard<py::gil_scoped_release>(), "The cheapest plan, or the best found with a lower bound.");
  m.def("dprs_k_best", &dprs_k_best, py::arg("problem"), py::arg("best"), py::arg("k"),
        py::arg("limits") = DprsLimits{}, py::call_guard<py::gil_scoped_release>(),
        "Up to k distinct good plans, best first.");
  m.def(
      "dprs_solve_within",
      [](const DprsProblem& problem, std::vector<std::vector<double>> labels, std::vector<double> groups, double limit,
         int k) {
        LimitedPlans found = solve_within(Objective(problem), {std::move(labels), std::move(groups)}, limit, k);
        return std::tuple(std::move(found.plans), found.limited, found.fits);
      },
      py::arg("problem"), py::arg("label_bytes"), py::arg("group_bytes"), py::arg("limit"), py::arg("k") = 1,
      py::call_guard<py::gil_scoped_release>(),
      "(plans, whether the limit changed them, whether any plan keeps to it) for bytes by layer and label, and by "
      "group.");
  m.def(
      "dprs_within",
      [](const DprsProblem& problem,
         const std::vector<std::tuple<std::vector<std::vector<double>>, std::vector<double>,
                                      std::vector<std::vector<double>>, double>>& bounds,
         double epsilon, size_t front, size_t most_sums) {
        std::vector<Bound> own;
        for (const auto& [labels, groups, adapts, most] : bounds) {
          own.push_back({{labels, groups, adapts, problem.schemas}, most});
        }
        LabelLimits limits;
        limits.epsilon = epsilon;
        limits.front = front;
        limits.most_sums = most_sums;
        WithinBounds found = dprs_within(problem, own, limits);
        py::gil_scoped_acquire acquire;
        py::dict stats;
        stats["prices"] = found.stats.prices;
        stats["searches"] = found.stats.searches;
        stats["labels"] = found.stats.labels;
        stats["priced_cost"] = found.stats.priced_cost;
        stats["priced_bound"] = found.stats.priced_bound;
        return std::tuple(std::move(found.plan), found.lower_bound, stats);
      },
      py::arg("problem"), py::arg("bounds"), py::arg("epsilon") = LabelLimits{}.epsilon,
      py::arg("front") = LabelLimits{}.front, py::arg("most_sums") = LabelLimits{}.most_sums,
      py::call_guard<py::gil_scoped_release>(),
      "(plan or None, lower bound, statistics) within bounds: amounts by layer and label, by group, by blob and "
      "conversion (empty for none), and the most that there may be.");
}

}  // namespace softneuro::bindings
