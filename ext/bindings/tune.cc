// Tuning in Python: options, the cost database, plans, log messages.
#include <pybind11/operators.h>

#include <optional>
#include <tuple>
#include <type_traits>
#include <vector>

#include "base/error.h"
#include "ext/bindings/bindings.h"
#include "tune/options.h"
#include "tune/plan/plan_file.h"
#include "tune/records/cost_db.h"
#include "tune/records/cost_line.h"

namespace softneuro::bindings {

void bind_dprs(py::module_& m);

namespace {

void bind_options(py::module_& m) {
  py::enum_<TuneMode>(m, "TuneMode", "When routines are measured.")
      .value("profile", TuneMode::profile)
      .value("cached", TuneMode::cached)
      .value("off", TuneMode::off);
  py::enum_<HostMode>(m, "HostMode", "What runs the parts that stay with the host.")
      .value("eager", HostMode::eager)
      .value("inductor", HostMode::inductor);
  py::class_<Options>(m, "Options", "The options of every front door; see option_table().")
      .def(py::init<>())
      .def_readwrite("schemas", &Options::schemas)
      .def_readwrite("max_error", &Options::max_error)
      .def_readwrite("threads", &Options::threads)
      .def_readwrite("tune", &Options::tune)
      .def_readwrite("time_budget_s", &Options::time_budget_s)
      .def_readwrite("host", &Options::host)
      .def_readwrite("plan", &Options::plan)
      .def_readwrite("min_region_size", &Options::min_region_size)
      .def_readwrite("never_worse", &Options::never_worse)
      .def_readwrite("shortcuts", &Options::shortcuts)
      .def_readwrite("strict_nonfinite", &Options::strict_nonfinite)
      .def_readwrite("flush_denormals", &Options::flush_denormals)
      .def_readwrite("strict", &Options::strict)
      .def_property_readonly("max_memory", [](const Options& options) { return options.max_memory.str(); })
      .def_property_readonly("keep", [](const Options& options) { return format_keep(options.pins.keep); })
      .def_property_readonly("fixed", [](const Options& options) { return format_fixed(options.pins.fixed); })
      .def_readwrite("verbose", &Options::verbose);
  m.def(
      "option_table",
      [] {
        std::vector<std::map<std::string, std::string>> rows;
        for (const OptionInfo& row : option_table()) {
          rows.push_back({{"name", std::string(row.name)},
                          {"type", std::string(row.type)},
                          {"default", std::string(row.default_value)},
                          {"range", std::string(row.range)},
                          {"help", std::string(row.help)}});
        }
        return rows;
      },
      "Name, type, default, range and help of every option.");
  m.def("parse_options", &parse_options, py::arg("values"),
        "Options from texts; raises Error for unknown names and values outside their range.");
  m.def(
      "pins_in_floats",
      [](const std::string& keep, const std::string& fixed) {
        const Pins pins = in_floats({parse_keep(keep), parse_fixed(fixed)});
        return std::pair(format_keep(pins.keep), format_fixed(pins.fixed));
      },
      py::arg("keep"), py::arg("fixed"), "The options of these names, without what asks layers of floats for bytes.");
  m.def("format_options", &format_options, py::arg("options"), "Options as texts that parse_options() reads back.");
}

template <typename Record>
py::dict to_dict(const Record& record) {
  py::dict fields;
  Record::fields(record, [&](std::string_view name, const auto& value, const auto&) {
    fields[py::str(name.data(), name.size())] = py::cast(value);
  });
  return fields;
}

// Throws Error for fields that are missing or none of the record's; TypeError for values of another type.
template <typename Record>
Record from_dict(const py::dict& fields) {
  Record record;
  size_t count = 0;
  Record::fields(record, [&](std::string_view name, auto& value, const auto&) {
    const py::str key(name.data(), name.size());
    if (!fields.contains(key))
      throw Error("a record of kind " + std::string(Record::kind) + " needs " + std::string(name));
    value = fields[key].cast<std::remove_reference_t<decltype(value)>>();
    ++count;
  });
  if (fields.size() != count) throw Error("a record of kind " + std::string(Record::kind) + " has no such fields");
  return record;
}

// Calls fn with a record of that kind; throws Error if there is none.
template <typename Fn>
void of_kind(const std::string& kind, Fn&& fn) {
  if (!with_record_kind(kind, fn)) throw Error("there are no records of kind '" + kind + "'", "cost database");
}

void bind_cost_db(py::module_& m) {
  using release = py::call_guard<py::gil_scoped_release>;
  py::class_<CostKey>(m, "CostKey", "What a record is valid for.")
      .def(py::init<std::string, int, std::string, std::string, std::string, std::string>(), py::arg("device"),
           py::arg("threads"), py::arg("signature"), py::arg("descriptor"), py::arg("version"), py::arg("graph") = "")
      .def_readonly("device", &CostKey::device)
      .def_readonly("threads", &CostKey::threads)
      .def_readonly("signature", &CostKey::signature)
      .def_readonly("descriptor", &CostKey::descriptor)
      .def_readonly("version", &CostKey::version)
      .def_readonly("graph", &CostKey::graph);
  // Bytes go in and out as they are: a key may hold any.
  py::class_<CostDb>(m, "CostDb", "What tuning has learned, kept between runs; see csrc/tune/records/cost_records.h.")
      .def(py::init<std::string, size_t>(), py::arg("directory") = "",
           py::arg("max_bytes") = size_t{CostDb::default_max_bytes}, release())
      .def_static("default_directory", &CostDb::default_directory)
      .def(
          "find",
          [](CostDb& db, const CostKey& key) -> std::optional<std::tuple<double, int, double>> {
            const auto record = db.find<TimeRecord>(key);
            if (!record) return std::nullopt;
            return std::tuple(record->seconds, record->samples, record->spread);
          },
          py::arg("key"), release(), "A time: (seconds, samples, spread) or None.")
      .def(
          "add",
          [](CostDb& db, const CostKey& key, double seconds, int samples, double spread) {
            db.add(key, TimeRecord{seconds, samples, spread});
          },
          py::arg("key"), py::arg("seconds"), py::arg("samples") = 1, py::arg("spread") = 0.0, release(), "A time.")
      .def(
          "get",
          [](CostDb& db, const std::string& kind, const CostKey& key) -> std::optional<py::dict> {
            std::optional<py::dict> fields;
            of_kind(kind, [&]<typename Record>(const Record&) {
              if (const auto record = db.find<Record>(key)) fields = to_dict(*record);
            });
            return fields;
          },
          py::arg("kind"), py::arg("key"), "A record's fields, or None.")
      .def(
          "put",
          [](CostDb& db, const std::string& kind, const CostKey& key, const py::dict& fields) {
            of_kind(kind, [&]<typename Record>(const Record&) { db.add(key, from_dict<Record>(fields)); });
          },
          py::arg("kind"), py::arg("key"), py::arg("fields"), "Adds a record of any kind.")
      .def(
          "records",
          [](CostDb& db) {
            std::vector<std::tuple<std::string, CostKey, py::dict>> list;
            for (const CostDb::Entry& entry : db.entries()) {
              of_kind(entry.kind, [&]<typename Record>(const Record&) {
                if (const auto record = parse_record<Record>(entry.record)) {
                  list.emplace_back(entry.kind, entry.key, to_dict(*record));
                }
              });
            }
            return list;
          },
          "(kind, key, fields) of the newest record of each kind and key, the oldest first.")
      .def("compact", &CostDb::compact, release())
      .def("__len__", &CostDb::size, release())
      .def_property_readonly("path", &CostDb::path);
  m.def_submodule("testing").def("cost_line_checksum",
                                 [](const std::string& text) { return cost_line_checksum(text); });
}

void bind_plan(py::module_& m) {
  py::class_<PlanKey>(m, "PlanKey", "What a plan is for.")
      .def(py::init<std::string, std::string, std::string, int, std::string>(), py::arg("graph"), py::arg("shapes"),
           py::arg("device"), py::arg("threads"), py::arg("calibration") = "")
      .def(py::self == py::self)
      .def_readwrite("graph", &PlanKey::graph)
      .def_readwrite("shapes", &PlanKey::shapes)
      .def_readwrite("device", &PlanKey::device)
      .def_readwrite("threads", &PlanKey::threads)
      .def_readwrite("calibration", &PlanKey::calibration);
  py::class_<PlanGrid>(m, "PlanGrid", "What a blob of reals is stored by where the plan has it in bytes.")
      .def(py::init<int, float, int, int, int>(), py::arg("blob"), py::arg("scale"), py::arg("zero_point"),
           py::arg("least") = 0, py::arg("most") = 255)
      .def(py::self == py::self)
      .def_readwrite("blob", &PlanGrid::blob)
      .def_readwrite("scale", &PlanGrid::scale)
      .def_readwrite("zero_point", &PlanGrid::zero_point)
      .def_readwrite("least", &PlanGrid::least)
      .def_readwrite("most", &PlanGrid::most);
  py::class_<PlanStep>(m, "PlanStep", "The routine chosen for one layer.")
      .def(py::init<int, std::string, std::string, double>(), py::arg("layer"), py::arg("type"), py::arg("descriptor"),
           py::arg("seconds"))
      .def(py::self == py::self)
      .def_readwrite("layer", &PlanStep::layer)
      .def_readwrite("type", &PlanStep::type)
      .def_readwrite("descriptor", &PlanStep::descriptor)
      .def_readwrite("seconds", &PlanStep::seconds);
  py::class_<PlanAdapt>(m, "PlanAdapt", "One conversion of a blob.")
      .def(py::init<int, std::string, std::string, double>(), py::arg("blob"), py::arg("source"), py::arg("target"),
           py::arg("seconds"))
      .def(py::self == py::self)
      .def_readwrite("blob", &PlanAdapt::blob)
      .def_readwrite("source", &PlanAdapt::from)
      .def_readwrite("target", &PlanAdapt::to)
      .def_readwrite("seconds", &PlanAdapt::seconds);
  py::class_<Plan>(m, "PlanSection", "The chosen routines of one graph at one shape.")
      .def(py::init<PlanKey, std::vector<PlanStep>, std::vector<PlanAdapt>, double, double>(), py::arg("key"),
           py::arg("steps"), py::arg("adapts"), py::arg("seconds"), py::arg("lower_bound"))
      .def(py::self == py::self)
      .def_readwrite("key", &Plan::key)
      .def_readwrite("steps", &Plan::steps)
      .def_readwrite("adapts", &Plan::adapts)
      .def_readwrite("grids", &Plan::grids)
      .def_readwrite("seconds", &Plan::seconds)
      .def_readwrite("lower_bound", &Plan::lower_bound)
      .def_property(
          "errors",
          [](const Plan& plan) {
            std::map<std::string, double> errors;
            for (const ProvenError& proven : plan.proven) errors[proven.weights] = proven.error;
            return errors;
          },
          [](Plan& plan, const std::map<std::string, double>& errors) {
            plan.proven.clear();
            for (const auto& [weights, error] : errors) plan.proven.push_back({weights, error});
          },
          "Relative L2 against exact routines, by the content of the weights that it was measured with.");
  py::class_<PlanFile>(m, "PlanFile", "Plans as text, one section per graph, shapes, device and threads.")
      .def(py::init<>())
      .def_static(
          "parse", [](const std::string& text) { return PlanFile::parse(text); }, py::arg("text"),
          "From text or bytes; raises Error naming the line.")
      .def_static("load", &load_plans, py::arg("path"))
      .def("save", &save_plans, py::arg("path"), py::call_guard<py::gil_scoped_release>())
      .def("format", &PlanFile::format)
      .def(
          "find",
          [](const PlanFile& file, const PlanKey& key) {
            const Plan* plan = file.find(key);
            return plan == nullptr ? std::nullopt : std::optional(*plan);
          },
          py::arg("key"))
      .def("set", &PlanFile::set, py::arg("plan"))
      .def_property_readonly("plans", [](const PlanFile& file) { return file.plans(); });
}

}  // namespace

void bind_tune(py::module_& m) {
  bind_dprs(m);
  bind_options(m);
  bind_cost_db(m);
  bind_plan(m);
}

}  // namespace softneuro::bindings
