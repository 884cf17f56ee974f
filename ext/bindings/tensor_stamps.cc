// Whether tensors have been written to, or lie elsewhere, since a host looked at them.
#include "ext/bindings/bindings.h"

namespace softneuro::bindings {
namespace {

// Asks each of hundreds of tensors what Python would, in a fraction of its time. Keeps none of them alive: whoever lets
// one die calls clear before, as a weak reference's callback can.
class TensorStamps {
 public:
  TensorStamps(const std::vector<py::object>& tensors, py::object version, py::object address)
      : version_(std::move(version)), address_(std::move(address)), get_(Py_TYPE(version_.ptr())->tp_descr_get) {
    if (get_ == nullptr) throw py::type_error("TensorStamps: version must be a descriptor");
    for (const py::object& tensor : tensors) tensors_.push_back(tensor.ptr());
    count_ = tensors_.size();
  }

  void expect(std::vector<int64_t> versions, std::vector<int64_t> addresses) {
    if (versions.size() != count_ || addresses.size() != count_) {
      throw py::value_error("TensorStamps: a version and an address for each tensor");
    }
    versions_ = std::move(versions);
    addresses_ = std::move(addresses);
    expects_ = true;
  }

  bool are(const py::tuple& tensors) const {
    if (tensors.size() != tensors_.size()) return false;
    for (size_t i = 0; i < tensors_.size(); ++i) {
      if (PyTuple_GET_ITEM(tensors.ptr(), static_cast<Py_ssize_t>(i)) != tensors_[i]) return false;
    }
    return true;
  }

  bool unchanged() const {
    if (!expects_) return false;
    for (size_t i = 0; i < tensors_.size(); ++i) {
      PyObject* const tensor = tensors_[i];
      auto* const type = reinterpret_cast<PyObject*>(Py_TYPE(tensor));
      if (number(get_(version_.ptr(), tensor, type)) != versions_[i]) return false;
      if (number(PyObject_CallOneArg(address_.ptr(), tensor)) != addresses_[i]) return false;
    }
    return tensors_.size() == count_;
  }

  void clear() { tensors_.clear(); }

 private:
  // 0 for an error, as inference tensors give instead of a version. Takes over the reference.
  static int64_t number(PyObject* answer) {
    const int64_t value = answer != nullptr ? PyLong_AsLongLong(answer) : 0;
    Py_XDECREF(answer);
    if (PyErr_Occurred() == nullptr) return value;
    PyErr_Clear();
    return 0;
  }

  py::object version_, address_;
  descrgetfunc get_;
  std::vector<PyObject*> tensors_;  // none after `clear`
  size_t count_ = 0;
  std::vector<int64_t> versions_, addresses_;
  bool expects_ = false;
};

}  // namespace

void bind_tensor_stamps(py::module_& m) {
  py::class_<TensorStamps>(m, "TensorStamps",
                           "Tensors' version counters and addresses, to ask later whether they are the same. Keeps no "
                           "tensor alive: clear() is to be called before one dies.")
      .def(py::init<const std::vector<py::object>&, py::object, py::object>(), py::arg("tensors"), py::arg("version"),
           py::arg("address"),
           "version: descriptor of the counter, an error counting as 0; address: function of a tensor. Neither runs "
           "Python code. Raises TypeError for no descriptor.")
      .def("expect", &TensorStamps::expect, py::arg("versions"), py::arg("addresses"),
           "What they are to be, by tensor. Raises ValueError for another number of them.")
      .def("are", &TensorStamps::are, py::arg("tensors"), "Whether it is these it looks at.")
      .def("unchanged", &TensorStamps::unchanged, "Whether all are as expected; never after clear().")
      .def("clear", &TensorStamps::clear, "Looks at no tensor from here on.");
}

}  // namespace softneuro::bindings
