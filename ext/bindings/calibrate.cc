// Calibration in Python: statistics of blobs, ranges, their grids and their file.
#include <pybind11/operators.h>

#include <optional>
#include <tuple>
#include <vector>

#include "base/error.h"
#include "ext/bindings/bindings.h"
#include "tune/calibrate/calibrated.h"
#include "tune/calibrate/calibrator.h"
#include "tune/calibrate/fit.h"
#include "tune/calibrate/range_table.h"
#include "tune/plan/planner.h"
#include "tune/records/cost_keys.h"

namespace softneuro::bindings {
namespace {

// Keeps the lock of the interpreter, which is what keeps two threads from one object.
void observe(BlobStatistics& statistics, const py::array& values) {
  if (values.dtype().kind() != 'f') {
    throw Error("an array of " + std::string(py::str(values.dtype())) + " has no real values", "calibration",
                "give floats");
  }
  const FloatArray floats = FloatArray::ensure(values);
  if (!floats) throw Error("an array cannot be converted to float32", "calibration");
  statistics.observe({floats.data(), static_cast<size_t>(floats.size())});
}

void bind_statistics(py::module_& m) {
  using Bound = std::pair<float, float>;
  py::class_<BlobStatistics>(m, "BlobStatistics", "What calibration keeps of a blob's values, however many there are.")
      .def(py::init<>())
      .def("observe", &observe, py::arg("values"), "One batch: floats of any shape and strides.")
      .def("merge", &BlobStatistics::merge, py::arg("other"), "As if the other's batches had been observed.")
      .def_property_readonly("count", &BlobStatistics::count, "Finite values.")
      .def_property_readonly("batches", &BlobStatistics::batches, "Batches with a finite value.")
      .def_property_readonly("nans", &BlobStatistics::nans)
      .def_property_readonly("infinities", &BlobStatistics::infinities)
      .def_property_readonly("nonfinite", &BlobStatistics::nonfinite)
      .def_property_readonly("least", [](const BlobStatistics& own) { return own.range().least; })
      .def_property_readonly("most", [](const BlobStatistics& own) { return own.range().most; })
      .def_property_readonly(
          "average", [](const BlobStatistics& own) { return Bound(own.average().least, own.average().most); },
          "Moving averages of the batches' least and most values.")
      .def(
          "bins",
          [](const BlobStatistics& own) {
            std::vector<std::tuple<float, float, uint64_t>> rows;
            for (const BlobStatistics::Bin& bin : own.bins()) rows.emplace_back(bin.low, bin.high, bin.count);
            return rows;
          },
          "(low, high, count) of the bins that are not empty, in ascending order.");
  m.def(
      "fit",
      [](const BlobStatistics& statistics, const std::string& method) {
        const ValueRange range = fit(statistics, FitSettings::parse(method));
        return Bound(range.least, range.most);
      },
      py::arg("statistics"), py::arg("method"),
      "(least, most) by min_max, moving_average, percentile[:99.99], mse or entropy.");
  m.def(
      "fit_method", [](const std::string& method) { return FitSettings::parse(method).str(); }, py::arg("method"),
      "The method's full name; raises Error for one that is not known.");
  m.def(
      "grid_of",
      [](float least, float most) {
        const Quantization grid = grid_of({least, most});
        return std::pair(grid.scales[0], grid.zero_points[0]);
      },
      py::arg("least"), py::arg("most"), "(scale, zero_point) of the unsigned bytes that cover a range and zero.");
}

void bind_ranges(py::module_& m) {
  py::class_<BlobRange>(m, "BlobRange", "A blob's calibrated range, and the error of having it in bytes.")
      .def(py::init([](int blob, std::string name, float least, float most, int64_t count, int64_t nonfinite,
                       std::optional<double> error, const std::optional<std::pair<float, float>>& seen) {
             BlobRange row{blob, std::move(name), {least, most}, count, nonfinite, error};
             if (seen) row.seen = {seen->first, seen->second};
             return row;
           }),
           py::arg("blob"), py::arg("name"), py::arg("least"), py::arg("most"), py::arg("count") = 0,
           py::arg("nonfinite") = 0, py::arg("error") = py::none(), py::arg("seen") = py::none())
      .def(py::self == py::self)
      .def_readwrite("blob", &BlobRange::blob)
      .def_readwrite("name", &BlobRange::name)
      .def_property(
          "least", [](const BlobRange& row) { return row.range.least; },
          [](BlobRange& row, float least) { row.range.least = least; })
      .def_property(
          "most", [](const BlobRange& row) { return row.range.most; },
          [](BlobRange& row, float most) { row.range.most = most; })
      .def_readwrite("count", &BlobRange::count)
      .def_readwrite("nonfinite", &BlobRange::nonfinite)
      .def_readwrite("error", &BlobRange::error)
      .def_property(
          "seen",
          [](const BlobRange& row) {
            return row.seen ? std::optional(std::pair(row.seen->least, row.seen->most)) : std::nullopt;
          },
          [](BlobRange& row, const std::optional<std::pair<float, float>>& seen) {
            row.seen = seen ? std::optional(ValueRange{seen->first, seen->second}) : std::nullopt;
          });
  py::class_<BlobMeans>(m, "BlobMeans", "Means by channel of a blob that a layer with weights reads.")
      .def(py::init<int, std::vector<double>>(), py::arg("blob"), py::arg("values"))
      .def(py::self == py::self)
      .def_readwrite("blob", &BlobMeans::blob)
      .def_readwrite("values", &BlobMeans::values);
  py::class_<LayerError>(m, "LayerError", "The error of having a layer in another form than floats.")
      .def(py::init<int, std::string, std::string, std::optional<double>, bool>(), py::arg("layer"), py::arg("name"),
           py::arg("form"), py::arg("error") = py::none(), py::arg("corrected") = false)
      .def(py::self == py::self)
      .def_readwrite("layer", &LayerError::layer)
      .def_readwrite("name", &LayerError::name)
      .def_readwrite("form", &LayerError::form)
      .def_readwrite("error", &LayerError::error)
      .def_readwrite("corrected", &LayerError::corrected);
  py::class_<RangeSection>(m, "RangeSection", "The calibrated ranges of one graph with one set of weights.")
      .def(py::init([](std::string structure, std::string weights, std::string method, int64_t batches, int64_t samples,
                       std::vector<BlobRange> blobs, std::vector<LayerError> layers, std::vector<BlobMeans> means) {
             return RangeSection{{std::move(structure), std::move(weights)},
                                 std::move(method),
                                 batches,
                                 samples,
                                 std::move(blobs),
                                 std::move(layers),
                                 std::move(means)};
           }),
           py::arg("structure"), py::arg("weights"), py::arg("method"), py::arg("batches") = 0, py::arg("samples") = 0,
           py::arg("blobs") = std::vector<BlobRange>(), py::arg("layers") = std::vector<LayerError>(),
           py::arg("means") = std::vector<BlobMeans>())
      .def(py::self == py::self)
      .def_property(
          "structure", [](const RangeSection& section) { return section.key.structure; },
          [](RangeSection& section, std::string text) { section.key.structure = std::move(text); })
      .def_property(
          "weights", [](const RangeSection& section) { return section.key.weights; },
          [](RangeSection& section, std::string text) { section.key.weights = std::move(text); })
      .def_readwrite("method", &RangeSection::method)
      .def_readwrite("batches", &RangeSection::batches)
      .def_readwrite("samples", &RangeSection::samples)
      .def_readwrite("blobs", &RangeSection::blobs)
      .def_readwrite("layers", &RangeSection::layers)
      .def_readwrite("means", &RangeSection::means);
  py::class_<RangeTable>(m, "RangeTable", "Calibrated ranges as text, one section per graph and weights.")
      .def(py::init<>())
      .def_static(
          "parse", [](const std::string& text) { return RangeTable::parse(text); }, py::arg("text"),
          "From text or bytes; raises Error naming the line.")
      .def_static("load", &load_ranges, py::arg("path"))
      .def("save", &save_ranges, py::arg("path"), py::call_guard<py::gil_scoped_release>())
      .def("format", &RangeTable::format)
      .def(
          "find",
          [](const RangeTable& table, std::string structure, std::string weights) {
            const RangeSection* section = table.find({std::move(structure), std::move(weights)});
            return section == nullptr ? std::nullopt : std::optional(*section);
          },
          py::arg("structure"), py::arg("weights"))
      .def("set", &RangeTable::set, py::arg("section"))
      .def_property_readonly("sections", [](const RangeTable& table) { return table.sections(); });
}

void bind_calibrator(py::module_& m) {
  py::class_<Calibrator>(m, "Calibrator", "Learns the ranges of a model's blobs, and what roundings do, on real data.")
      .def(py::init([](const Graph& graph, int threads) {
             return std::make_unique<Calibrator>(tune_settings(graph, Options(), threads), shared_cost_db());
           }),
           py::arg("graph"), py::arg("threads") = 1)
      .def(
          "watching",
          [](Calibrator& calibrator, const Graph& graph) {
            return std::const_pointer_cast<Net>(calibrator.watching(graph));
          },
          py::arg("graph"), py::keep_alive<0, 1>(), py::call_guard<py::gil_scoped_release>(),
          "A net of the optimised graph that observes its blobs while it runs: one run at a time, end_batch() after "
          "each.")
      .def("end_batch", &Calibrator::end_batch)
      .def_property_readonly("batches", &Calibrator::batches)
      .def(
          "finish",
          [](Calibrator& calibrator, const std::string& method, double seconds) {
            return calibrator.finish(FitSettings::parse(method), seconds, own_pool(calibrator.threads()));
          },
          py::arg("method") = "percentile:99.99", py::arg("seconds") = 20.0, py::call_guard<py::gil_scoped_release>(),
          "Ranges and errors. Raises Error if nothing was observed.");
  m.def("range_key", &range_key, py::arg("graph"),
        "Hash of what graphs of one model have in common in all shapes, as files of ranges have it.");
}

}  // namespace

void bind_calibrate(py::module_& m) {
  bind_statistics(m);
  bind_ranges(m);
  bind_calibrator(m);
}

}  // namespace softneuro::bindings
