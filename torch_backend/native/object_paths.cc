// From one Python object to others, dictionary by dictionary, as Python code would get there.
#include "torch_backend/native/native.h"

namespace softneuro::native {
namespace {

class ObjectPaths {
 public:
  // From the value of a number, the root's being 0, each step's the next, to an item of it or of its __dict__.
  using Step = std::tuple<size_t, bool, py::object>;

  ObjectPaths(std::vector<Step> steps, std::vector<size_t> chosen)
      : steps_(std::move(steps)), chosen_(std::move(chosen)) {
    for (size_t i = 0; i < steps_.size(); ++i) {
      if (std::get<0>(steps_[i]) > i) throw py::index_error("ObjectPaths: a step from a value that comes later");
    }
    for (const size_t number : chosen_) {
      if (number > steps_.size()) throw py::index_error("ObjectPaths: no value of this number");
    }
  }

  py::tuple take(const py::object& root) const {
    const std::vector<py::object> values = all_values(root);
    py::tuple found(chosen_.size());
    for (size_t i = 0; i < chosen_.size(); ++i) found[i] = values[chosen_[i]];
    return found;
  }

  py::list asked(const py::object& root) const {
    const std::vector<py::object> values = all_values(root);
    py::list holders;
    for (const Step& step : steps_) holders.append(values[std::get<0>(step)]);
    return holders;
  }

 private:
  std::vector<py::object> all_values(const py::object& root) const {
    std::vector<py::object> values;
    values.reserve(steps_.size() + 1);
    values.push_back(root);
    for (const auto& [holder, own_dict, key] : steps_) values.push_back(item(values[holder], own_dict, key));
    return values;
  }

  static py::object item(const py::object& holder, bool own_dict, const py::object& key) {
    py::object items = holder;
    if (own_dict) items = checked(PyObject_GenericGetDict(holder.ptr(), nullptr));
    if (!PyDict_CheckExact(items.ptr())) return checked(PyObject_GetItem(items.ptr(), key.ptr()));
    PyObject* const found = PyDict_GetItemWithError(items.ptr(), key.ptr());
    if (found != nullptr) return py::reinterpret_borrow<py::object>(found);
    if (PyErr_Occurred() == nullptr) PyErr_SetObject(PyExc_KeyError, key.ptr());
    throw py::error_already_set();
  }
  static py::object checked(PyObject* made) {
    if (made == nullptr) throw py::error_already_set();
    return py::reinterpret_steal<py::object>(made);
  }

  std::vector<Step> steps_;
  std::vector<size_t> chosen_;
};

}  // namespace

void bind_object_paths(py::module_& m) {
  py::class_<ObjectPaths>(m, "ObjectPaths", "The way from one Python object to others by dictionaries' keys.")
      .def(py::init<std::vector<ObjectPaths::Step>, std::vector<size_t>>(), py::arg("steps"), py::arg("chosen"),
           "steps: (number of the value that holds it, whether in its __dict__, key); numbers: 0 is the root's, each "
           "step's the next. Raises IndexError for a number that is not there yet.")
      .def("take", &ObjectPaths::take, py::arg("root"),
           "The chosen values as they are now. Raises KeyError where one is not there.")
      .def("asked", &ObjectPaths::asked, py::arg("root"),
           "The instances and dictionaries that the values are taken from. Raises KeyError where one is not there.");
}

}  // namespace softneuro::native
