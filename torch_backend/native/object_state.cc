#include "torch_backend/native/object_state.h"

namespace softneuro::native {

void bind_object_state(py::module_& m) {
  py::class_<ObjectState, std::shared_ptr<ObjectState>>(
      m, "ObjectState",
      "Python objects as they are now, to ask later whether they still are. Each must be held by "
      "one added before it, the first by whoever asks: only constants are kept alive.")
      .def(py::init<const py::tuple&>(), py::arg("constants"),
           "constants: types of what is kept alive, also in tuples. Their objects are to hold no others.")
      .def("add_instance", &ObjectState::add_instance, py::arg("instance"),
           "Its class, which dictionary it has, and which objects are in that. Raises TypeError if it has none.")
      .def("add_dict", &ObjectState::add_dict, py::arg("items"), "Which objects are in a dictionary, in which order.")
      .def("set_tensors", &ObjectState::set_tensors, py::arg("watch"),
           "Tensors that are to be of the same kind, looked at last.")
      .def("includes", &ObjectState::includes, py::arg("objects"), "Whether all of these have been added.")
      .def("holds", &ObjectState::holds, "Whether all but the tensors is as it was when it was added.")
      .def("unchanged", &ObjectState::unchanged, "Whether all is as it was when it was added, tensors' kinds included.")
      .def("confirmed", &ObjectState::confirmed, py::arg("check"), py::arg("argument"),
           "Whether all is unchanged while `check(argument)` is true, which must run no Python code.")
      .def_property_readonly("hits", &ObjectState::hits, "How often it was unchanged.");
}

}  // namespace softneuro::native
