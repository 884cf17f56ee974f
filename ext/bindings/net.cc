// softneuro._C.Net: a prepared graph, for bare use from Python and for the hosts' ops.
#include "net/net.h"

#include "base/error.h"
#include "ext/bindings/bindings.h"
#include "ext/bindings/plan.h"

namespace softneuro::bindings {
namespace {

Assignment resolve(const Graph& graph, const py::object& plan, int threads) {
  if (plan.is_none()) return default_assignment(graph, threads);
  if (py::isinstance<BoundPlan>(plan)) return py::cast<const BoundPlan&>(plan).assignment_for(graph, threads);
  Assignment assignment;  // a list of descriptors, one per layer
  for (const auto& descriptor : py::cast<std::vector<std::string>>(plan)) {
    assignment.layers.push_back(descriptor.empty() ? RoutineChoice{} : find_routine(descriptor));
  }
  if (assignment.layers.size() != graph.layers().size()) {
    throw Error("a plan of " + std::to_string(assignment.layers.size()) + " layers for a graph of " +
                std::to_string(graph.layers().size()));
  }
  add_needed_adapts(graph, assignment, threads);
  return assignment;
}

class Buffers {
 public:
  Buffers(const Net& net, const py::sequence& inputs) {
    const auto& descs = net.input_descs();
    if (inputs.size() != descs.size()) {
      throw Error("got " + std::to_string(inputs.size()) + " inputs for a net of " + std::to_string(descs.size()));
    }
    for (size_t i = 0; i < descs.size(); ++i) {
      inputs_.push_back(border_array(inputs[i], descs[i].shape, net.input_schemas()[i], "input " + std::to_string(i)));
      in.push_back(inputs_.back().data());
    }
    for (size_t k = 0; k < net.output_descs().size(); ++k) {
      // What is an input's memory is that array.
      const int updated = net.updated_input(k);
      outputs.push_back(updated >= 0 ? inputs_[static_cast<size_t>(updated)]
                                     : new_border_array(net.output_descs()[k].shape, net.output_schemas()[k]));
      out.push_back(updated >= 0 ? nullptr : outputs.back().mutable_data());
    }
  }

  std::vector<const void*> in;
  std::vector<void*> out;
  std::vector<py::array> outputs;

 private:
  std::vector<py::array> inputs_;
};

std::vector<py::array> run(const Net& net, const py::sequence& inputs) {
  Buffers buffers(net, inputs);
  const ParallelFor pool = own_pool(net.threads());
  {
    const py::gil_scoped_release release;
    net.run(buffers.in, buffers.out, pool);
  }
  return buffers.outputs;
}

py::list profile(const Net& net, const py::sequence& inputs, int rounds) {
  Buffers buffers(net, inputs);
  const ParallelFor pool = own_pool(net.threads());
  std::vector<StepTime> steps;
  {
    const py::gil_scoped_release release;
    steps = net.profile(buffers.in, buffers.out, pool, rounds);
  }
  py::list list;
  for (const StepTime& step : steps) {
    list.append(py::make_tuple(step.layer, step.name, step.descriptor, step.seconds));
  }
  return list;
}

py::dict stats(const Net& net) { return stats_dict(net.stats()); }

py::list memory(const Net& net) {
  py::list list;
  for (const BlobMemory& blob : net.memory()) {
    py::dict entry;
    entry["name"] = blob.name;
    entry["schema"] = blob.schema;
    entry["home"] = blob.home;
    entry["offset"] = blob.offset;
    entry["bytes"] = blob.bytes;
    entry["first"] = blob.first;
    entry["last"] = blob.last;
    entry["content"] = blob.content;
    list.append(entry);
  }
  return list;
}

}  // namespace

void bind_net(py::module_& m) {
  py::class_<Net, std::shared_ptr<Net>>(m, "Net", "A graph prepared for execution: immutable, run from any thread.")
      .def(py::init([](const Graph& graph, const py::object& plan, int threads) {
             const Assignment assignment = resolve(graph, plan, threads);
             const py::gil_scoped_release release;
             return std::const_pointer_cast<Net>(Net::prepare(graph, assignment, threads, PackedCache::shared()));
           }),
           py::arg("graph"), py::arg("plan") = py::none(), py::kw_only(), py::arg("threads") = 1,
           "plan: a Plan, a list of descriptors (one per layer, '' for constants), or None for each layer's first "
           "routine. Raises Error if it does not fit the graph or memory is short.")
      .def("run", &run, py::arg("inputs"),
           "Arrays of the graph's input shapes to those of its outputs, in the types of its border; bfloat16 as uint16 "
           "bits.")
      .def("profile", &profile, py::arg("inputs"), py::arg("rounds") = 10,
           "(layer index or -1 for an adapt, name, descriptor, median seconds) of each step.")
      .def_property_readonly("threads", &Net::threads)
      .def_property_readonly("stats", &stats,
                             "arena_bytes, blob_bytes, packed_bytes, own_bytes, border_bytes, peak_bytes, steps.")
      .def_static(
          "shared_packed_bytes", [] { return PackedCache::shared().bytes(); },
          "Bytes of packed weights that all nets of this process hold together.")
      .def("memory", &memory, "Where each blob lives during a run.");
}

}  // namespace softneuro::bindings
