// What the files of torch's Python module share: one bind_*() each. No header of torch's is needed here.
#pragma once

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

namespace softneuro::native {

namespace py = pybind11;

// What a weak reference is of; None once that is gone.
inline py::object referent(const py::object& reference) {
#if PY_VERSION_HEX < 0x030D0000
  return py::reinterpret_borrow<py::object>(PyWeakref_GET_OBJECT(reference.ptr()));
#else
  PyObject* found = nullptr;
  if (PyWeakref_GetRef(reference.ptr(), &found) <= 0) return py::none();
  return py::reinterpret_steal<py::object>(found);
#endif
}

void bind_object_paths(py::module_& m);
void bind_object_state(py::module_& m);
void bind_tensor_watch(py::module_& m);
void bind_known_call(py::module_& m);
void bind_tensor_set(py::module_& m);

}  // namespace softneuro::native
