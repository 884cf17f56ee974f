// Whether tensors are of the same kind, unwritten and where they were, by what torch keeps of them.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "base/memory_snapshot.h"

#include "torch_backend/native/native.h"

namespace softneuro::native {

inline const std::byte* pointer_at(const std::byte* at) {
  const std::byte* pointer = nullptr;
  std::memcpy(&pointer, at, sizeof(pointer));
  return pointer;
}

// Where torch has what changes with a tensor, in bytes. `place`: of the pointer to its own object within Python's. From
// the start of its own, whose size is `bytes`: pointers to the storage, the version counter and what autograd has of
// it. The first two objects have what is asked of them, the elements' address and a number of 32 bits, after their
// reference counts, autograd's has it at places of its own.
struct TensorFields {
  size_t place, bytes, count, storage, counter, autograd, requires_grad, grad_fn;
  using Numbers = std::array<size_t, 8>;
  explicit TensorFields(const Numbers& f)
      : place(f[0]),
        bytes(f[1]),
        count(f[2]),
        storage(f[3]),
        counter(f[4]),
        autograd(f[5]),
        requires_grad(f[6]),
        grad_fn(f[7]) {}
};

// Compares what torch keeps of tensors beside their elements with what it was when this was made, where it lies,
// without a call for each. Keeps none alive: whoever asks knows that they live. Reads only tensors of at most five
// dimensions, whose sizes are within torch's object.
class TensorWatch {
 public:
  using Fields = std::optional<TensorFields::Numbers>;

  // Reads nothing without `fields`, which is as if all had changed.
  TensorWatch(const std::vector<py::object>& tensors, const Fields& fields) {
    if (!fields) return;
    snapshot_.emplace();
    const auto shows = [&](const py::object& tensor) { return add(tensor.ptr(), TensorFields(*fields)); };
    if (!std::all_of(tensors.begin(), tensors.end(), shows)) snapshot_.reset();
  }

  // Whether Python's objects stand for the same of torch's, these are of the same size, type and storage and alike to
  // autograd, and what else was to be asked holds.
  bool same_kind() const { return snapshot_ && snapshot_->kind.unchanged() && check_holds(); }
  // Whether nothing has written to them, the elements are where they were, and kinds are the same without asking.
  bool unchanged() const { return snapshot_ && snapshot_->kind.unchanged() && snapshot_->content.unchanged(); }

  // A function that runs no Python code, called with some of them where kinds are compared.
  void ask_also(py::object check, const std::vector<py::object>& some) {
    check_ = std::move(check);
    checked_.clear();
    for (const py::object& tensor : some) checked_.push_back(tensor.ptr());
  }

 private:
  struct Snapshot {
    MemorySnapshot kind, content;
  };

  // False if it is without memory.
  bool add(PyObject* tensor, const TensorFields& fields) {
    constexpr size_t type = offsetof(PyObject, ob_type);
    const auto* const object = reinterpret_cast<const std::byte*>(tensor);
    const std::byte* const own = pointer_at(object + fields.place);
    auto& [kind, content] = *snapshot_;
    kind.add(object + type, fields.place + sizeof(own) - type);
    kind.add(own, sizeof(void*));  // its class; then its reference count
    kind.add(own + fields.count, fields.bytes - fields.count);
    if (const std::byte* autograd = pointer_at(own + fields.autograd); autograd != nullptr) {
      kind.add(autograd + fields.requires_grad, sizeof(bool));
      kind.add(autograd + fields.grad_fn, sizeof(void*));
    }
    const std::byte* const storage = pointer_at(own + fields.storage);
    if (storage == nullptr) return false;
    content.add(storage + fields.count, sizeof(void*));
    if (const std::byte* counter = pointer_at(own + fields.counter); counter != nullptr) {
      content.add(counter + fields.count, sizeof(uint32_t));
    }
    return true;
  }

  bool check_holds() const {
    if (!check_) return true;
    const auto answer =
        py::reinterpret_steal<py::object>(PyObject_Vectorcall(check_.ptr(), checked_.data(), checked_.size(), nullptr));
    if (!answer) PyErr_Clear();
    return answer.ptr() == Py_True;
  }

  std::optional<Snapshot> snapshot_;
  py::object check_;
  std::vector<PyObject*> checked_;
};

}  // namespace softneuro::native
