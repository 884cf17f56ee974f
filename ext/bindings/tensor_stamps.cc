#include "ext/bindings/tensor_stamps.h"

namespace softneuro::bindings {

void bind_tensor_stamps(py::module_& m) {
  py::class_<TensorMemory, std::shared_ptr<TensorMemory>>(
      m, "TensorMemory",
      "What torch keeps of tensors of up to five dimensions beside their elements, as it is now. Keeps none alive.")
      .def(py::init([](const std::vector<py::object>& tensors, const std::vector<uintptr_t>& own,
                       const TensorFields::Numbers& fields) {
             std::vector<PyObject*> objects;
             for (const py::object& tensor : tensors) objects.push_back(tensor.ptr());
             return std::make_shared<TensorMemory>(objects, own, TensorFields(fields));
           }),
           py::arg("tensors"), py::arg("own"), py::arg("fields"),
           "own: addresses of torch's objects; fields: these objects' size, how long a reference count is, where in "
           "them the storage, the version counter and autograd's object are pointed to, and where in that are "
           "requires_grad and grad_fn. Raises ValueError for tensors of another torch.")
      .def("same_kind", &TensorMemory::same_kind,
           "Whether classes, types, sizes, strides, storages and whether gradients are wanted are the same.")
      .def("untouched", &TensorMemory::untouched, "Whether versions and the elements' addresses are, too.");
  py::class_<TensorStamps>(m, "TensorStamps",
                           "Tensors' version counters and addresses, to ask later whether they are the same. Keeps no "
                           "tensor alive: clear() is to be called before one dies.")
      .def(py::init<const std::vector<py::object>&, py::object, py::object, const std::optional<TensorFields::Numbers>&,
                    std::vector<uintptr_t>>(),
           py::arg("tensors"), py::arg("version"), py::arg("address"), py::arg("fields") = py::none(),
           py::arg("own") = py::tuple(),
           "version: descriptor of the counter, an error counting as 0; address: function of a tensor. Neither runs "
           "Python code. Where torch's objects are given and their fields (of TensorMemory), these are compared in "
           "place of that. Raises TypeError for no descriptor.")
      .def("expect", &TensorStamps::expect, py::arg("versions"), py::arg("addresses"),
           "What they are to be, by tensor. Raises ValueError for another number of them.")
      .def("are", &TensorStamps::are, py::arg("tensors"), "Whether it is these it looks at.")
      .def("unchanged", &TensorStamps::unchanged, "Whether all are as expected; never after clear().")
      .def("clear", &TensorStamps::clear, "Looks at no tensor from here on.");
}

}  // namespace softneuro::bindings
