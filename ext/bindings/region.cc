// The table of prepared nets that a host's op runs by name.
#include "net/region.h"
#include "base/cache_lines.h"

#include "ext/bindings/bindings.h"

namespace softneuro::bindings {

void bind_region(py::module_& m) {
  py::class_<CacheLines>(m, "CacheLines", "Memory that is about to be read piece by piece, fetched into the caches.")
      .def(py::init<>())
      .def("add", &CacheLines::add, py::arg("address"), py::arg("size"),
           "`size` bytes to fetch. They may be gone by then: nothing is read.")
      .def_property_readonly(
          "address", [](const CacheLines& lines) { return reinterpret_cast<uintptr_t>(&lines); },
          "Of the list itself, by which run_known takes it.")
      .def("fetch", &CacheLines::fetch, "Fetches all of it, without waiting for the last of it.");
  m.def(
      "region_put",
      [](const std::string& region, std::vector<int64_t> signature,
         const std::vector<std::tuple<uintptr_t, size_t, bool>>& weights, const std::shared_ptr<Net>& net,
         std::vector<std::vector<int64_t>> orders, uint64_t weight_set, size_t capacity) {
        RegionEntry entry;
        entry.signature = std::move(signature);
        for (const auto& [data, bytes, whole] : weights) {
          entry.weights.add(reinterpret_cast<const void*>(data), bytes, whole);
        }
        entry.net = net;
        entry.orders = std::move(orders);
        entry.weight_set = weight_set;
        RegionTable::global().put(region, std::move(entry), capacity);
      },
      py::arg("region"), py::arg("signature"), py::arg("weights"), py::arg("net"), py::arg("orders"),
      py::arg("weight_set"), py::arg("capacity"),
      "Lets the op find a net. weights: (address, bytes, compare whole) of each tensor it was prepared from, in the "
      "op's "
      "order; orders: by output, its axes as they lie in memory, empty if row-major.");
  m.def(
      "region_drop", [](const std::string& region) { RegionTable::global().drop(region); }, py::arg("region"),
      "Forgets all nets of a region.");
  m.def(
      "region_clear", [](const std::string& region) { RegionTable::global().clear(region); }, py::arg("region"),
      "Frees the nets of a region that is going to have others.");
  m.def(
      "region_hits", [](const std::string& region) { return RegionTable::global().hits(region); }, py::arg("region"),
      "Calls that found their net ready, weights unchanged.");
  m.def(
      "region_drop_weight_set",
      [](const std::string& region, uint64_t weight_set) { RegionTable::global().drop_weight_set(region, weight_set); },
      py::arg("region"), py::arg("weight_set"), "Forgets the nets made from one set of weights.");
  m.def("set_region_error", &set_region_error, py::arg("text"),
        "Message of the error that this thread is about to raise in a region's slow path.");
  m.def(
      "region_entries", [](const std::string& region) { return RegionTable::global().entries(region); },
      py::arg("region"), "Number of nets that a region has.");
}

}  // namespace softneuro::bindings
