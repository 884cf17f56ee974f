// The measure of errors on NumPy arrays.
#include "base/error_measure.h"

#include "base/error.h"
#include "ext/bindings/bindings.h"

namespace softneuro::bindings {
namespace {

using DoubleArray = py::array_t<double, py::array::c_style | py::array::forcecast>;

// float32 as it is, every other type as float64.
class ArrayElements {
 public:
  explicit ArrayElements(const py::array& array) {
    if (py::isinstance<py::array_t<float>>(array)) floats_ = FloatArray::ensure(array);
    if (!floats_) doubles_ = DoubleArray::ensure(array);
    if (!floats_ && !doubles_) throw Error("an array is not convertible to numbers");
  }
  Elements elements() const {
    if (floats_) return {floats_.data(), floats_.size()};
    return {doubles_.data(), doubles_.size()};
  }

 private:
  FloatArray floats_ = py::reinterpret_steal<FloatArray>(nullptr);
  DoubleArray doubles_ = py::reinterpret_steal<DoubleArray>(nullptr);
};

OutputError measure(const py::array& result, const py::array& host, const std::optional<py::array>& truth) {
  const ArrayElements ours(result), theirs(host);
  std::optional<ArrayElements> right;
  if (truth) right.emplace(*truth);
  const Elements a = ours.elements(), b = theirs.elements();
  const std::optional<Elements> c = right ? std::optional(right->elements()) : std::nullopt;
  const py::gil_scoped_release release;
  return measure_error(a, b, c ? &*c : nullptr);
}

double judged(const py::array& result, const py::array& host, const std::optional<py::array>& truth, bool in_steps,
              double max_error) {
  const ArrayElements ours(result), theirs(host);
  std::optional<ArrayElements> right;
  if (truth) right.emplace(*truth);
  const std::optional<Elements> exact = right ? std::optional(right->elements()) : std::nullopt;
  const py::gil_scoped_release release;
  return judged_error(ours.elements(), theirs.elements(), in_steps, max_error,
                      [&] { return exact ? &*exact : nullptr; });
}

}  // namespace

void bind_error_measure(py::module_& m) {
  py::class_<OutputError>(m, "OutputError", "One output's distances from the truth, relative L2.")
      .def(py::init<double, double>(), py::arg("error") = 0.0, py::arg("host") = 0.0)
      .def_readonly("error", &OutputError::error, "The result's.")
      .def_readonly("host", &OutputError::host, "The host's own; 0 where it is exact.")
      .def("allowed", &OutputError::allowed, py::arg("max_error"), "What the result's may be.")
      .def("against", &OutputError::against, py::arg("max_error"),
           "The error on a scale on which max_error is allowed.")
      .def("within", &OutputError::within, py::arg("max_error"));
  m.def("error_of_steps", &error_of_steps, py::arg("distance"),
        "The error of quantized results: 0 for a distance that two right executions may have.");
  m.def("judged_error", &judged, py::arg("result"), py::arg("host"), py::arg("truth"), py::arg("in_steps"),
        py::arg("max_error"),
        "An output's error on a scale on which max_error is allowed: see csrc/base/error_measure.h.");
  m.def("measure_error", &measure, py::arg("result"), py::arg("host"), py::arg("truth") = py::none(),
        "Distances of a result, and of the host's, from the truth, which is the host's where none is given.");
}

}  // namespace softneuro::bindings
