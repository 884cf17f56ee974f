// Which ops of a graph run as regions, for a door in Python.
#include "runtime/partition/partition.h"

#include "base/error.h"
#include "ext/bindings/bindings.h"

namespace softneuro::bindings {
namespace {

AtRim at_rim_of(const std::string& name) {
  if (name == "stays") return AtRim::stays;
  if (name == "leaves") return AtRim::leaves;
  if (name == "converts") return AtRim::converts;
  throw Error("at_rim is '" + name + "'", {}, "give stays, leaves or converts");
}

UnitRole role_of(const std::string& name) {
  if (name == "none") return UnitRole::none;
  if (name == "quantize") return UnitRole::quantize;
  if (name == "dequantize") return UnitRole::dequantize;
  if (name == "clamp") return UnitRole::clamp;
  throw Error("role is '" + name + "'", {}, "give none, quantize, dequantize or clamp");
}

}  // namespace

void bind_partition(py::module_& m) {
  py::class_<Partition::Part>(m, "Part", "Nodes that run as one region.")
      .def_readonly("nodes", &Partition::Part::nodes)
      .def_readonly("ops", &Partition::Part::ops)
      .def_readonly("steps", &Partition::Part::steps);
  py::class_<Partition>(m, "Partition", "Regions, and why the host keeps all other nodes.")
      .def_readonly("parts", &Partition::parts)
      .def_readonly("host", &Partition::host)
      .def_readonly("step_reasons", &Partition::step_reasons)
      .def_property_readonly("cuts", [](const Partition& partition) {
        std::vector<std::tuple<int, int, std::vector<int>>> cuts;
        for (const Cut& cut : partition.cuts) cuts.emplace_back(cut.before, cut.after, cut.nodes);
        return cuts;
      });
  py::class_<OpGraph>(m, "OpGraph",
                      "A host's graph: what layers can do of it, what may be a step, and who reads what. See "
                      "csrc/runtime/partition/op_graph.h.")
      .def(py::init<>())
      .def(
          "add_value",
          [](OpGraph& graph, bool is_output, bool stays_inside) {
            graph.values.push_back({is_output, stays_inside});
            return static_cast<int>(graph.values.size()) - 1;
          },
          py::kw_only(), py::arg("is_output") = false, py::arg("stays_inside") = false, "The number of a new tensor.")
      .def(
          "add_node",
          [](OpGraph& graph, std::string op, std::vector<int> inputs, std::vector<int> outputs, std::vector<int> after,
             std::string refusal, bool may_be_step, int ops, const std::string& at_rim, const std::string& role,
             bool with_readers, bool takes_inside, bool has_effect) {
            graph.nodes.push_back({std::move(op), std::move(inputs), std::move(outputs), std::move(after),
                                   std::move(refusal), may_be_step, ops, at_rim_of(at_rim), role_of(role), with_readers,
                                   takes_inside, has_effect});
            return static_cast<int>(graph.nodes.size()) - 1;
          },
          py::arg("op"), py::arg("inputs"), py::arg("outputs"), py::kw_only(), py::arg("after") = std::vector<int>(),
          py::arg("refusal") = std::string(), py::arg("may_be_step") = false, py::arg("ops") = 0,
          py::arg("at_rim") = "stays", py::arg("role") = "none", py::arg("with_readers") = false,
          py::arg("takes_inside") = false, py::arg("has_effect") = false,
          "The number of a new node, after those that it reads.")
      .def(
          "find_parts",
          [](const OpGraph& graph, int min_region_size, bool join) {
            PartitionRules rules;
            rules.min_region_size = min_region_size, rules.join = join, rules.cuts = true;
            return find_parts(graph, rules);
          },
          py::kw_only(), py::arg("min_region_size") = 1, py::arg("join") = true,
          "Convex regions of so many ops or more; with `join`, ops of the host may be steps of these.");
}

}  // namespace softneuro::bindings
