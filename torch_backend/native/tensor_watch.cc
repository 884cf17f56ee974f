#include "torch_backend/native/tensor_watch.h"

namespace softneuro::native {
namespace {

size_t tensor_place(const py::object& tensor, uintptr_t own) {
  const auto* const object = reinterpret_cast<const std::byte*>(tensor.ptr());
  const auto size = static_cast<size_t>(Py_TYPE(tensor.ptr())->tp_basicsize);
  for (size_t place = sizeof(PyObject); place + sizeof(own) <= size; place += sizeof(own)) {
    if (pointer_at(object + place) == reinterpret_cast<const std::byte*>(own)) return place;
  }
  throw py::value_error("tensor_place: a tensor that is not of this torch");
}

}  // namespace

void bind_tensor_watch(py::module_& m) {
  m.def("tensor_place", &tensor_place, py::arg("tensor"), py::arg("own"),
        "Where in Python's object for a tensor torch's is pointed to, whose address is `own`. Raises ValueError for a "
        "tensor of another torch.");
  py::class_<TensorWatch, std::shared_ptr<TensorWatch>>(m, "TensorWatch",
                                                        "Tensors as they are now, to ask later whether they still are. "
                                                        "Keeps none of them alive: all are to live whenever "
                                                        "it is asked.")
      .def(py::init<const std::vector<py::object>&, const TensorWatch::Fields&>(), py::arg("tensors"),
           py::arg("fields") = py::none(),
           "fields: the place of torch's object in Python's, its size, how long a reference count is, where in it the "
           "storage, the version counter and autograd's object are pointed to, and where in that are requires_grad and "
           "grad_fn; without, nothing is read, and all counts as changed.")
      .def("same_kind", &TensorWatch::same_kind,
           "Whether classes, types, sizes, strides, storages and whether gradients are wanted are the same, and what "
           "else is asked holds.")
      .def("unchanged", &TensorWatch::unchanged, "Whether kinds, versions and the elements' addresses are the same.")
      .def("ask_also", &TensorWatch::ask_also, py::arg("check"), py::arg("tensors"),
           "A function to be called with some of the tensors where kinds are the same. Is to run no Python code.");
}

}  // namespace softneuro::native
