// Whether Python objects are as they were: instances with their class and dictionary, dictionaries with their items.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "torch_backend/native/native.h"
#include "torch_backend/native/tensor_watch.h"

namespace softneuro::native {
// The number that an interpreter gives a dictionary anew at each change; 3.13 and later have none (PEP 699).
#if PY_VERSION_HEX < 0x030D0000
inline constexpr bool has_versions = true;
inline uint64_t version_of(PyObject* dict) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
  return reinterpret_cast<PyDictObject*>(dict)->ma_version_tag;
#pragma GCC diagnostic pop
}
#else
inline constexpr bool has_versions = false;
inline uint64_t version_of(PyObject*) { return 0; }
#endif

// Compares which objects there are, by their addresses. Kept alive are constants alone, so that no other comes to lie
// where one was; all else must be held by something added before it, the first by whoever asks, and is read only after
// that has proved unchanged. An object that takes the place of one of these is compared like it.
class ObjectState {
 public:
  explicit ObjectState(const py::tuple& constants) {
    for (const py::handle& type : constants) constants_.push_back(reinterpret_cast<PyTypeObject*>(type.ptr()));
  }

  void add_instance(const py::object& instance) {
    const py::object dict = dict_of(instance.ptr());
    if (!dict) throw py::type_error("ObjectState: an instance without a dictionary");
    add(instance.ptr(), dict.ptr());
  }
  void add_dict(const py::dict& dict) { add(dict.ptr(), dict.ptr()); }

  void set_tensors(std::shared_ptr<TensorWatch> watch) { tensors_ = std::move(watch); }

  // Whether the dictionaries and instances are.
  bool holds() {
    const NoCollection none;
    return objects_hold();
  }

  bool unchanged() {
    const NoCollection none;  // could run anything between the look at one object and that at the next
    if (!objects_hold() || (tensors_ != nullptr && !tensors_->same_kind())) return false;
    ++hits_;
    return true;
  }

  // Whether `check`, a function that runs no Python code, holds for what is unchanged at that very moment.
  bool confirmed(const py::object& check, const py::object& argument) {
    if (!unchanged()) return false;
    hits_ = 0;
    const auto answer = py::reinterpret_steal<py::object>(PyObject_CallOneArg(check.ptr(), argument.ptr()));
    if (!answer) PyErr_Clear();
    return answer.ptr() == Py_True;
  }
  uint64_t hits() const { return hits_; }

  bool includes(const py::list& objects) const {
    std::vector<PyObject*> mine;
    for (const Entry& entry : entries_) mine.push_back(entry.object);
    std::sort(mine.begin(), mine.end());
    return std::all_of(objects.begin(), objects.end(), [&](const py::handle& object) {
      return std::binary_search(mine.begin(), mine.end(), object.ptr());
    });
  }

 private:
  // Where an instance's dictionary is lies before it, as a rule.
  static constexpr size_t before = 3 * sizeof(void*);
  static constexpr size_t ahead = 8;  // entries fetched: a core can wait for about two lines of each

  struct Entry {
    PyObject* object;
    PyTypeObject* type;
    PyObject* dict;  // the object's own, or the object itself
    Py_ssize_t size;
    uint64_t version;  // with these items
  };
  struct Item {
    PyObject *key, *value;
  };
  struct NoCollection {
    int before = PyGC_Disable();
    NoCollection() = default;
    NoCollection(const NoCollection&) = delete;
    NoCollection& operator=(const NoCollection&) = delete;
    ~NoCollection() {
      if (before != 0) PyGC_Enable();
    }
  };

  // Null where there is none.
  static py::object dict_of(PyObject* instance) {
    auto dict = py::reinterpret_steal<py::object>(PyObject_GenericGetDict(instance, nullptr));
    if (!dict) PyErr_Clear();
    return dict;
  }

  // All of it lies far apart, and what ran since the last time has driven it out of the caches.
  bool objects_hold() {
    const Item* item = items_.data();
    for (size_t i = 0; i < entries_.size(); ++i) {
      if (i + ahead < entries_.size()) fetch(entries_[i + ahead]);
      if (!same(entries_[i], item)) return false;
      item += entries_[i].size;
    }
    return true;
  }

  void fetch(const Entry& entry) const {
    __builtin_prefetch(reinterpret_cast<const std::byte*>(entry.object) - before);
    __builtin_prefetch(entry.object);
    __builtin_prefetch(entry.dict);
  }

  bool is_constant(PyObject* object) const {
    return std::find(constants_.begin(), constants_.end(), Py_TYPE(object)) != constants_.end();
  }
  bool of_constants(PyObject* object) const {
    if (!PyTuple_CheckExact(object)) return is_constant(object);
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(object); ++i) {
      if (!is_constant(PyTuple_GET_ITEM(object, i))) return false;
    }
    return true;
  }

  static bool same(Entry& entry, const Item* expected) {
    if (Py_TYPE(entry.object) != entry.type) return false;
    if (entry.object != entry.dict && dict_of(entry.object).ptr() != entry.dict) return false;
    const uint64_t version = version_of(entry.dict);
    if (has_versions && version == entry.version) return true;
    if (PyDict_Size(entry.dict) != entry.size) return false;
    Item found;
    for (Py_ssize_t at = 0; PyDict_Next(entry.dict, &at, &found.key, &found.value) != 0; ++expected) {
      if (found.key != expected->key || found.value != expected->value) return false;
    }
    entry.version = version;
    return true;
  }

  void add(PyObject* object, PyObject* dict) {
    entries_.push_back({object, Py_TYPE(object), dict, PyDict_Size(dict), version_of(dict)});
    Item item;
    for (Py_ssize_t at = 0; PyDict_Next(dict, &at, &item.key, &item.value) != 0;) {
      items_.push_back(item);
      for (PyObject* object : {item.key, item.value}) {
        if (of_constants(object)) kept_.push_back(py::reinterpret_borrow<py::object>(object));
      }
    }
  }

  std::vector<PyTypeObject*> constants_;  // builtin ones, or held by modules that stay
  std::vector<Entry> entries_;
  std::vector<Item> items_;
  std::vector<py::object> kept_;
  std::shared_ptr<TensorWatch> tensors_;
  uint64_t hits_ = 0;
};

}  // namespace softneuro::native
