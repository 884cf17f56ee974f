// Whether tensors have been written to, or lie elsewhere, since a host looked at them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "ext/bindings/bindings.h"
#include "ext/bindings/tensor_memory.h"

namespace softneuro::bindings {

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

}  // namespace softneuro::bindings
