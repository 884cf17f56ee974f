// The Python module `softneuro._C`.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "base/arch.h"
#include "base/error.h"
#include "base/version.h"
#include "ext/bindings/bindings.h"
#include "tune/plan/planner.h"

namespace py = pybind11;
using namespace softneuro;

PYBIND11_MODULE(_C, m) {
  m.doc() = "The core of softneuro.";
  const auto& error = py::register_exception<Error>(m, "Error", PyExc_RuntimeError);
  py::register_exception<PlanFileError>(m, "PlanFileError", error);
  m.attr("__version__") = std::string(library_version());

  m.def("cpu_id", &cpu_id, "The CPU as the cost database names it, for instance 'intel-6-85-4'.");
  m.def("cpu_brand", &cpu_brand, "The CPU's own name for itself; empty if unknown.");
  m.def("kernel_hash", &kernel_hash, "Hash of the kernel sources; costs are valid for one hash.");
  m.def("physical_cores", &physical_cores, "Physical cores that this process may run on.");
  m.def("cores_may_be_apart", &cores_may_be_apart, "Whether threads may at times run on cores that share no cache.");
  m.def(
      "available_isas",
      [] {
        std::vector<std::string> names;
        for (Isa isa : available_isas()) names.emplace_back(isa_name(isa));
        return names;
      },
      "Instruction-set levels in use, best first; SOFTNEURO_MAX_ISA clamps them.");
  m.def(
      "available_extensions",
      [] {
        std::vector<std::string> names;
        for (Isa isa : available_extensions()) names.emplace_back(isa_name(isa));
        return names;
      },
      "Levels in use that add to another's vectors: 'avxvnni', 'avx512vnni', 'amx'. SOFTNEURO_MAX_ISA clamps them.");
  m.def(
      "caches",
      [] {
        const CacheInfo& info = caches();
        return std::map<std::string, size_t>{{"l1d", info.l1d}, {"l2", info.l2}, {"l3", info.l3}};
      },
      "Cache sizes in bytes by name (l1d, l2, l3); 0 if unknown.");
  bindings::bind_graph(m);
  bindings::bind_routines(m);
  bindings::bind_net(m);
  bindings::bind_partition(m);
  bindings::bind_region(m);
  bindings::bind_tune(m);
  bindings::bind_tuner(m);
  bindings::bind_timing(m);
  bindings::bind_log(m);
  bindings::bind_error_measure(m);
  bindings::bind_calibrate(m);
}
