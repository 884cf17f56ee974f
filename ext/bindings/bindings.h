// What the binding files share: one bind_*() each, and conversions between Python and core values.
#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <string>

#include "base/schema.h"
#include "base/threads.h"
#include "graph/graph.h"
#include "layers/contract/attrs.h"
#include "layers/host/host.h"
#include "layers/weights/constant_data.h"

namespace softneuro::bindings {

namespace py = pybind11;
using FloatArray = py::array_t<float, py::array::c_style | py::array::forcecast>;

void bind_graph(py::module_& m);
void bind_routines(py::module_& m);
void bind_net(py::module_& m);
void bind_partition(py::module_& m);
void bind_region(py::module_& m);
void bind_tune(py::module_& m);
void bind_tuner(py::module_& m);
void bind_timing(py::module_& m);
void bind_log(py::module_& m);
void bind_error_measure(py::module_& m);
void bind_calibrate(py::module_& m);

// Integers (and bools), floats, texts and integer sequences; throws Error naming the attribute for anything else.
Attrs to_attrs(const py::dict& values);
// Borrows a contiguous float32 array (kept alive by the constant); copies anything else that NumPy can convert.
Constant to_constant(const py::handle& array);
// scale and zero_point (a number or one per index of `axis`), least, most, reciprocal.
std::shared_ptr<const Quantization> to_quantization(const py::dict& values);
// Takes a dtype's name or a quantization.
TensorDesc to_desc(const Shape& shape, const py::object& type);
Layer to_layer(const std::string& type, const py::dict& attrs, const py::dict& weights, const py::dict& post);
// A step of a net that calls function(inputs, outputs) with lists of arrays on the net's memory, and each output as
// (shape, dtype). What the function raises becomes an Error.
HostOp host_function(py::function function, const py::sequence& outputs, bool read_only, bool strided);
// bfloat16 and qint8 as bits.
py::dtype numpy_type(DType dtype);
Shape to_shape(const py::handle& dims);
py::tuple from_shape(const Shape& shape);
template <typename T>
py::array_t<T> new_array(const Shape& shape) {
  return py::array_t<T>(std::vector<py::ssize_t>(shape.begin(), shape.end()));
}

// An array of a shape as a net's border wants it: of its type (bfloat16 and qint8 as bits), C-contiguous in the
// border's layout. Float64 and the like are converted to float32, other types are not. Throws Error naming `what`.
py::array border_array(const py::handle& value, const Shape& shape, const Schema& schema, const std::string& what);
// Makes a new one. A channels-last border gives an array of the logical shape whose strides are so.
py::array new_border_array(const Shape& shape, const Schema& schema);

}  // namespace softneuro::bindings
