// What looks for changes of weights that nothing else shows.
#include "runtime/weight_scan.h"

#include <tuple>
#include <utility>
#include <vector>

#include "ext/bindings/bindings.h"

namespace softneuro::bindings {

void bind_weight_scan(py::module_& m) {
  using Pieces = std::vector<std::tuple<uintptr_t, size_t, std::vector<int64_t>, std::vector<int64_t>>>;
  py::class_<WeightScan, std::shared_ptr<WeightScan>>(
      m, "WeightScan", "The bytes of a set of weights, a slice of which is compared now and then.")
      .def(py::init([] { return std::make_shared<WeightScan>(); }))
      .def(
          "learn",
          [](WeightScan& scan, const Pieces& given) {
            std::vector<WeightScan::Piece> pieces;
            for (const auto& [data, element_bytes, sizes, strides] : given) {
              pieces.push_back({reinterpret_cast<const void*>(data), element_bytes, sizes, strides});
            }
            const py::gil_scoped_release released;
            scan.learn(std::move(pieces));
          },
          py::arg("pieces"),
          "Takes the bytes as they are now, unless they are known. pieces: (address, bytes of an element, sizes, "
          "strides) by tensor.")
      .def("forget", &WeightScan::forget, py::call_guard<py::gil_scoped_release>(),
           "They have changed: nets made before are not of them.")
      .def("calls_to_see_all", &WeightScan::calls_to_see_all, py::arg("run_ns"),
           "Calls that take so long each after which every byte has been compared; 0 if there is nothing to compare.")
      .def_property_readonly("run_ns", &WeightScan::run_ns, "What the last run took, in nanoseconds; 0 before any.")
      .def_property_readonly("bytes", &WeightScan::bytes, "How many are compared.")
      .def_property_readonly_static(
          "found", [](const py::object&) { return WeightScan::found(); }, "Changes found in this process.");
}

}  // namespace softneuro::bindings
