// What the files of torch's Python module share: one bind_*() each. No header of torch's is needed here.
#pragma once

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

namespace softneuro::native {

namespace py = pybind11;

void bind_object_paths(py::module_& m);
void bind_object_state(py::module_& m);
void bind_tensor_watch(py::module_& m);
void bind_known_call(py::module_& m);
void bind_tensor_set(py::module_& m);

}  // namespace softneuro::native
