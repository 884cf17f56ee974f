// Regions while a program runs, for a door that is written in Python.
#include "runtime/region.h"

#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "ext/bindings/bindings.h"
#include "ext/bindings/plan.h"
#include "runtime/region_table.h"
#include "tune/options.h"

namespace softneuro::bindings {
namespace {

using Orders = std::vector<std::vector<int64_t>>;
using Weights = std::pair<uint64_t, uint64_t>;

// A call whose parts Python has; the runtime itself runs without the interpreter's lock.
class PythonCall : public RegionCall {
 public:
  PythonCall(const py::object& call, int threads)
      : call_(call),
        threads_(threads),
        open_shapes_(call.attr("open_shapes").cast<bool>()),
        anew_(call.attr("anew").cast<bool>()),
        declined_(call.attr("declined").cast<std::string>()) {}

  LoweredCall lower() override {
    const py::gil_scoped_acquire gil;
    const auto [graph, runs, orders] =
        call_.attr("lower")().cast<std::tuple<Graph, std::shared_ptr<PaidRuns>, Orders>>();
    return LoweredCall{graph, runs, orders, nullptr};
  }
  void run_host() override {
    const py::gil_scoped_acquire gil;
    call_.attr("run_host")();
  }
  void run_instead() override {
    const py::gil_scoped_acquire gil;
    call_.attr("run_instead")();
  }
  void run_net(const Ready& ready) override {
    const py::gil_scoped_acquire gil;
    if (!call_.attr("run_net")(reinterpret_cast<uintptr_t>(&ready)).cast<bool>()) {
      throw HostStepError("a step of the host raised in the net");
    }
  }
  double error(double max_error) override {
    const py::gil_scoped_acquire gil;
    return call_.attr("error")(max_error).cast<double>();
  }
  std::string inputs() const override {
    const py::gil_scoped_acquire gil;
    return call_.attr("inputs")().cast<std::string>();
  }
  void progress(int done, int total) override {
    const py::gil_scoped_acquire gil;
    call_.attr("progress")(done, total);
  }
  int threads() const override { return threads_; }
  bool open_shapes() const override { return open_shapes_; }
  bool anew() const override { return anew_; }
  std::string declined() const override { return declined_; }

 private:
  const py::object& call_;
  int threads_;
  bool open_shapes_, anew_;
  std::string declined_;
};

py::dict state_dict(const ShapeState& state) {
  py::dict found;
  found["host"] = state.host.empty() ? py::object(py::none()) : py::str(state.host);
  found["plan"] = py::none();
  if (state.plan != nullptr) {
    found["plan"] = BoundPlan{state.plan->graph_hash, state.plan->settings, state.plan->result};
  }
  found["verdict"] = py::none();
  const Verdict& verdict = state.verdict;
  if (verdict.known) {
    found["verdict"] =
        py::make_tuple(verdict.wins, verdict.reason, verdict.seconds, verdict.host_seconds, verdict.error);
  }
  found["net_stats"] = py::none();
  if (state.stats) found["net_stats"] = stats_dict(*state.stats);
  return found;
}

}  // namespace

void bind_region(py::module_& m) {
  py::class_<Region, std::shared_ptr<Region>>(m, "Region", "Nets, plans and verdicts of a region by signature.")
      .def(py::init([](std::string name, std::string content, std::string host,
                       const std::map<std::string, std::string>& options) {
             RegionSettings settings;
             settings.name = std::move(name);
             settings.content = std::move(content);
             settings.host = std::move(host);
             settings.options = parse_options(options);
             return std::make_shared<Region>(std::move(settings));
           }),
           py::arg("name"), py::arg("content"), py::arg("host"), py::arg("options"),
           "content: a hash of the ops, which verdicts are remembered by; host: how the host runs it, and its version.")
      .def(
          "run",
          [](Region& region, const Signature& signature, const Weights& weights, const py::object& call, int threads) {
            PythonCall given(call, threads);
            const py::gil_scoped_release released;
            return region.run(signature, {weights.first, weights.second}, given) == Region::Side::net;
          },
          py::arg("signature"), py::arg("weights"), py::arg("call"), py::arg("threads"),
          "Runs a call that found no net ready; whether the net has its results, or the host. weights: (identity, "
          "epoch). "
          "call: lower() -> (graph, PaidRuns or None, [axes as they lie in memory by output]), run_host(), "
          "run_instead(), run_net(address of what run_made takes) -> whether no step raised, error(max_error), "
          "progress(done, total), inputs() in words; open_shapes: whether others may follow, anew: whether a plan is "
          "wanted "
          "for the very shapes, declined: why no net is. Raises PlanFileError, and what the host raises.")
      .def(
          "run_after_error",
          [](Region& region, const Signature& signature, const py::object& call, int threads) {
            PythonCall given(call, threads);
            const py::gil_scoped_release released;
            region.run_after_error(signature, given);
          },
          py::arg("signature"), py::arg("call"), py::arg("threads"),
          "The same by the host, after a step of the net has raised.")
      .def(
          "shapes",
          [](const Region& region) {
            std::vector<std::pair<Signature, ShapeState>> shapes;
            {
              const py::gil_scoped_release released;  // whoever holds the region's lock may wait for Python
              shapes = region.shapes();
            }
            py::list list;
            for (const auto& [signature, state] : shapes) {
              list.append(py::make_tuple(py::tuple(py::cast(signature)), state_dict(state)));
            }
            return list;
          },
          "(signature, state) of what is known, the last used last.")
      .def(
          "finish_calibration",
          [](Region& region, const py::object& progress) {
            Progress report;
            if (!progress.is_none()) {
              report = [&](int done, int total) {
                const py::gil_scoped_acquire gil;
                progress(done, total);
              };
            }
            const py::gil_scoped_release released;
            return region.finish_calibration(report);
          },
          py::arg("progress") = py::none(),
          "Ends the observing of calls that the option `calibration` asks for, and writes the file of ranges. How many "
          "calls were observed.")
      .def(
          "reconfigure",
          [](Region& region, const std::map<std::string, std::string>& options) {
            region.reconfigure(parse_options(options));
          },
          py::arg("options"), py::call_guard<py::gil_scoped_release>(),
          "Forgets all that was decided, and goes on with these options. Calls may go on meanwhile.")
      .def("clear", &Region::clear, py::call_guard<py::gil_scoped_release>(), "Frees all nets.")
      .def("start_afresh", &Region::start_afresh, py::call_guard<py::gil_scoped_release>(),
           "Bears as many changes of weights as at the beginning.")
      .def_property_readonly("held_up", &Region::held_up, "Why weights keep the host at work for now, or empty.")
      .def_property_readonly(
          "outside",
          [](const Region& region) {
            const OutsideCounts::Found found = region.outside();
            std::vector<std::tuple<std::string, float, float, float, int64_t>> inputs;
            for (const OutsideInput& input : found.inputs) {
              inputs.emplace_back(input.name, input.range.least, input.range.most, input.value, input.calls);
            }
            return py::make_tuple(found.looked, found.outside, inputs);
          },
          "(calls looked at, calls with inputs outside of what calibration observed, [(input, least and most observed, "
          "the farthest value met, calls)]), for plans with grids of their own.")
      .def_property_readonly("nets", &Region::nets, "How many nets are ready.")
      .def_property_readonly("hits", &Region::hits, "Calls that found their net ready, weights unchanged.")
      .def_property_readonly("credit_ns", &Region::credit_ns, "What may be spent on preparing, in nanoseconds.");
  m.def(
      "region_add",
      [](const std::string& name, std::shared_ptr<Region> region) {
        RegionTable::global().add(name, std::move(region));
      },
      py::arg("name"), py::arg("region"), "Lets the op find a region.");
  m.def(
      "region_drop", [](const std::string& name) { RegionTable::global().drop(name); }, py::arg("name"),
      py::call_guard<py::gil_scoped_release>(), "Forgets a region.");
  m.def("pause_first_sights", &Region::pause_first_sights, py::arg("pause"),
        "Whether calls of new sizes are prepared for, rather than left to the host; each pause is to be ended.");
  m.def("left_to_host", &left_to_host,
        "Whether this thread's last call of run_ready has found that the host is to run it.");
  m.def("set_region_error", &set_region_error, py::arg("text"),
        "Message of the error that this thread is about to raise in a region's slow path.");
}

}  // namespace softneuro::bindings
