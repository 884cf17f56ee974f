// What torch keeps of tensors beside their elements, as it was: compared where it lies, without a call for each.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "base/memory_picture.h"

#include "ext/bindings/bindings.h"

namespace softneuro::bindings {

// Where torch has what changes with a tensor, in bytes from the start of its own object, whose size is `bytes`:
// pointers to the storage, the version counter and what autograd has of it. The first two objects have what is asked of
// them, the elements' address and a number of 32 bits, after their reference counts, autograd's has it at places of its
// own.
struct TensorFields {
  size_t bytes, count, storage, counter, autograd, requires_grad, grad_fn;
  using Numbers = std::array<size_t, 7>;
  explicit TensorFields(const Numbers& f)
      : bytes(f[0]), count(f[1]), storage(f[2]), counter(f[3]), autograd(f[4]), requires_grad(f[5]), grad_fn(f[6]) {}
};

// Keeps no tensor alive. Only for tensors of at most five dimensions, whose sizes are within torch's object.
class TensorMemory {
 public:
  TensorMemory(const std::vector<PyObject*>& tensors, const std::vector<uintptr_t>& own, const TensorFields& fields) {
    if (tensors.size() != own.size()) throw py::value_error("TensorMemory: torch's object for each tensor");
    for (size_t i = 0; i < tensors.size(); ++i) add(tensors[i], reinterpret_cast<const std::byte*>(own[i]), fields);
  }

  // Whether Python's objects stand for the same of torch's, and these are of the same size, type and storage, and
  // alike to autograd.
  bool same_kind() const { return kind_.unchanged(); }
  // Whether also nothing has written to them, and the elements are where they were.
  bool untouched() const { return kind_.unchanged() && content_.unchanged(); }

 private:
  static const std::byte* pointer_at(const std::byte* at) {
    const std::byte* pointer = nullptr;
    std::memcpy(&pointer, at, sizeof(pointer));
    return pointer;
  }

  void add(PyObject* tensor, const std::byte* own, const TensorFields& fields) {
    const auto* const object = reinterpret_cast<const std::byte*>(tensor);
    const auto size = static_cast<size_t>(Py_TYPE(tensor)->tp_basicsize);
    size_t place = sizeof(PyObject);  // of the pointer to torch's object
    while (place + sizeof(own) <= size && pointer_at(object + place) != own) place += sizeof(own);
    if (place + sizeof(own) > size) throw py::value_error("TensorMemory: a tensor that is not of this torch");
    constexpr size_t type = offsetof(PyObject, ob_type);
    kind_.add(object + type, place + sizeof(own) - type);
    kind_.add(own, sizeof(void*));  // its class; then its reference count
    kind_.add(own + fields.count, fields.bytes - fields.count);
    if (const std::byte* autograd = pointer_at(own + fields.autograd); autograd != nullptr) {
      kind_.add(autograd + fields.requires_grad, sizeof(bool));
      kind_.add(autograd + fields.grad_fn, sizeof(void*));
    }
    const std::byte* const storage = pointer_at(own + fields.storage);
    if (storage == nullptr) throw py::value_error("TensorMemory: a tensor without memory");
    content_.add(storage + fields.count, sizeof(void*));
    if (const std::byte* counter = pointer_at(own + fields.counter); counter != nullptr) {
      content_.add(counter + fields.count, sizeof(uint32_t));
    }
  }

  MemoryPicture kind_, content_;
};

}  // namespace softneuro::bindings
