// Whether tensors have been written to, or lie elsewhere, since a host looked at them.
#include <optional>

#include "ext/bindings/bindings.h"
#include "ext/bindings/tensor_memory.h"

namespace softneuro::bindings {
namespace {

// Asks each of hundreds of tensors what Python would, in a fraction of its time. Keeps none of them alive: whoever lets
// one die calls clear before, as a weak reference's callback can.
class TensorStamps {
 public:
  TensorStamps(const std::vector<py::object>& tensors, py::object version, py::object address,
               const std::optional<TensorFields::Numbers>& fields, std::vector<uintptr_t> own)
      : version_(std::move(version)),
        address_(std::move(address)),
        get_(Py_TYPE(version_.ptr())->tp_descr_get),
        own_(std::move(own)) {
    if (get_ == nullptr) throw py::type_error("TensorStamps: version must be a descriptor");
    for (const py::object& tensor : tensors) tensors_.push_back(tensor.ptr());
    count_ = tensors_.size();
    if (fields) fields_.emplace(*fields);
  }

  void expect(std::vector<int64_t> versions, std::vector<int64_t> addresses) {
    if (versions.size() != count_ || addresses.size() != count_) {
      throw py::value_error("TensorStamps: a version and an address for each tensor");
    }
    versions_ = std::move(versions);
    addresses_ = std::move(addresses);
    expects_ = true;
    memory_.reset();
    if (!fields_ || tensors_.size() != count_) return;
    try {
      memory_.emplace(tensors_, own_, *fields_);
    } catch (const py::value_error&) {  // one of them stands for another of torch's objects now
      return;
    }
    // As expected when the picture was taken, that is: versions do not come back.
    if (!as_expected()) memory_.reset();
  }

  bool are(const py::tuple& tensors) const {
    if (tensors.size() != tensors_.size()) return false;
    for (size_t i = 0; i < tensors_.size(); ++i) {
      if (PyTuple_GET_ITEM(tensors.ptr(), static_cast<Py_ssize_t>(i)) != tensors_[i]) return false;
    }
    return true;
  }

  bool unchanged() const {
    if (!expects_ || tensors_.size() != count_) return false;
    return memory_ ? memory_->untouched() : as_expected();
  }

  void list(CacheLines& lines) const {
    if (memory_) memory_->list(lines);
  }

  void clear() {
    tensors_.clear();
    memory_.reset();
  }

 private:
  bool as_expected() const {
    for (size_t i = 0; i < tensors_.size(); ++i) {
      PyObject* const tensor = tensors_[i];
      auto* const type = reinterpret_cast<PyObject*>(Py_TYPE(tensor));
      if (number(get_(version_.ptr(), tensor, type)) != versions_[i]) return false;
      if (number(PyObject_CallOneArg(address_.ptr(), tensor)) != addresses_[i]) return false;
    }
    return true;
  }

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
  std::vector<uintptr_t> own_;  // torch's objects
  std::optional<TensorFields> fields_;
  std::optional<TensorMemory> memory_;  // while all are as expected, what that looks like
};

}  // namespace

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
      .def("list", &TensorStamps::list, py::arg("lines"), "Adds what unchanged() is going to read.")
      .def("clear", &TensorStamps::clear, "Looks at no tensor from here on.");
}

}  // namespace softneuro::bindings
