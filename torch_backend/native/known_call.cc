// Calls of a region whose net is ready, on weights that are what they were, without Python's code and torch's
// dispatcher.
#include <Python.h>
#include <structmember.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "torch_backend/native/known_run.h"
#include "torch_backend/native/native.h"
#include "torch_backend/native/object_state.h"
#include "torch_backend/native/tensor_set.h"

namespace softneuro::native {
namespace {

// Weights by the object that all of them are reached from, or by None.
class KnownWeights {
 public:
  void set(const py::object& root, std::shared_ptr<TensorSet> weights, std::shared_ptr<ObjectState> state) {
    std::erase_if(by_root_, [](const auto& entry) {
      const Known& known = *entry.second;
      return known.weights->ended() || (known.root && referent(known.root).is_none());
    });
    const py::object reference = root.is_none() ? py::object() : py::weakref(root);
    by_root_[root.ptr()] = std::make_shared<const Known>(Known{reference, std::move(weights), std::move(state)});
  }

  // Nothing if they are not, or no longer, known to be what the root leads to.
  std::optional<WeightSet> find(PyObject* root) const {
    const auto found = by_root_.find(root);
    if (found == by_root_.end()) return std::nullopt;
    const std::shared_ptr<const Known> known = found->second;  // it may be replaced while Python is asked
    if (known->root && referent(known->root).ptr() != root) return std::nullopt;  // another object lies where it was
    if (known->state != nullptr && !known->state->holds()) return std::nullopt;
    return known->weights->epoch_of();
  }

 private:
  struct Known {
    py::object root;  // a weak reference, or null for None
    std::shared_ptr<TensorSet> weights;
    std::shared_ptr<ObjectState> state;  // while it holds, the root leads to them; null for None
  };

  std::unordered_map<PyObject*, std::shared_ptr<const Known>> by_root_;
};

// What a call is made of. Arguments are meant by their places among the positional ones.
struct Recipe {
  static constexpr size_t limit = 16;  // tensors in and out, each

  std::shared_ptr<Region> region;
  const KnownRun* host;
  py::object without_net;  // called with the same arguments where weights are known and no net is ready, if not None
  py::object otherwise;    // the same where nothing else can be done
  py::list listeners;      // nothing is done while there are any
  std::shared_ptr<KnownWeights> weights;
  size_t arguments = 0;
  py::ssize_t root = -1;  // place; -1 for None
  std::vector<size_t> inputs, sizes, outputs;
  PyTypeObject* tensor = nullptr;
  size_t place = 0;  // of the host's tensor within Python's object

  bool accepts(PyObject* const* given, std::array<void*, limit>& tensors, std::array<int64_t, limit>& numbers) const {
    for (size_t i = 0; i < inputs.size(); ++i) {
      PyObject* const input = given[inputs[i]];
      if (Py_TYPE(input) != tensor) return false;
      tensors[i] = reinterpret_cast<std::byte*>(input) + place;
    }
    for (size_t i = 0; i < sizes.size(); ++i) {
      PyObject* const size = given[sizes[i]];
      if (!PyLong_CheckExact(size)) return false;
      numbers[i] = PyLong_AsLongLong(size);
      if (numbers[i] == -1 && PyErr_Occurred() != nullptr) {
        PyErr_Clear();
        return false;
      }
    }
    return true;
  }

  // The region's outputs as a list, or null without an error: what is to be called then is in `instead`.
  py::object run(PyObject* const* given, PyObject*& instead) const {
    if (PyList_GET_SIZE(listeners.ptr()) != 0) return {};
    std::array<void*, limit> in;
    std::array<int64_t, limit> numbers;
    if (!accepts(given, in, numbers)) return {};
    const auto known = weights->find(root < 0 ? Py_None : given[root]);
    if (!known) return {};
    if (!without_net.is_none()) instead = without_net.ptr();

    std::array<void*, limit> out;
    size_t count = 0;
    try {
      const py::gil_scoped_release released;
      count =
          host->run(*region, std::span(in).first(inputs.size()), std::span(numbers).first(sizes.size()), *known, out);
    } catch (const std::exception&) {  // the way around will say
      instead = otherwise.ptr();
      return {};
    }
    if (count == 0) return {};
    std::array<py::object, limit> made;
    for (size_t i = 0; i < count; ++i) {
      made[i] = py::reinterpret_steal<py::object>(static_cast<PyObject*>(host->wrap(out[i])));
      host->drop(out[i]);
    }
    py::list results(outputs.size());
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (outputs[i] >= count || !made[outputs[i]]) {
        PyErr_Clear();
        instead = otherwise.ptr();
        return {};
      }
      PyList_SET_ITEM(results.ptr(), static_cast<py::ssize_t>(i), made[outputs[i]].inc_ref().ptr());
    }
    return results;
  }
};

// A class of its own, as a call by pybind11 takes longer than all that this does around a net.
struct KnownCall {
  PyObject_HEAD vectorcallfunc call;
  Recipe* recipe;

  static PyObject* vectorcall(PyObject* self, PyObject* const* given, size_t flags, PyObject* names) {
    const Recipe& recipe = *reinterpret_cast<KnownCall*>(self)->recipe;
    PyObject* instead = recipe.otherwise.ptr();
    try {
      if (names == nullptr && static_cast<size_t>(PyVectorcall_NARGS(flags)) == recipe.arguments) {
        if (py::object results = recipe.run(given, instead)) return results.release().ptr();
      }
    } catch (py::error_already_set& error) {
      error.restore();
      return nullptr;
    } catch (const std::bad_alloc&) {
      return PyErr_NoMemory();
    }
    return PyObject_Vectorcall(instead, given, flags & ~PY_VECTORCALL_ARGUMENTS_OFFSET, names);
  }

  static int traverse(PyObject* self, visitproc visit, void* arg) {
    const Recipe* recipe = reinterpret_cast<KnownCall*>(self)->recipe;
    Py_VISIT(Py_TYPE(self));
    if (recipe != nullptr) {
      Py_VISIT(recipe->without_net.ptr());
      Py_VISIT(recipe->otherwise.ptr());
      Py_VISIT(recipe->listeners.ptr());
    }
    return 0;
  }
  static int clear(PyObject* self) {
    // Still called, by others that are being collected, it does nothing.
    if (Recipe* recipe = reinterpret_cast<KnownCall*>(self)->recipe)
      recipe->otherwise = recipe->without_net = py::none();
    return 0;
  }
  static void dealloc(PyObject* self) {
    PyObject_GC_UnTrack(self);
    delete std::exchange(reinterpret_cast<KnownCall*>(self)->recipe, nullptr);
    PyTypeObject* const type = Py_TYPE(self);
    type->tp_free(self);
    Py_DECREF(type);
  }
};

// Lives as long as the module.
PyTypeObject* known_call_type() {
  static PyMemberDef members[] = {
      {"__vectorcalloffset__", T_PYSSIZET, offsetof(KnownCall, call), READONLY, nullptr},
      {nullptr, 0, 0, 0, nullptr},
  };
  static PyType_Slot slots[] = {
      {Py_tp_call, reinterpret_cast<void*>(&PyVectorcall_Call)},
      {Py_tp_members, members},
      {Py_tp_traverse, reinterpret_cast<void*>(&KnownCall::traverse)},
      {Py_tp_clear, reinterpret_cast<void*>(&KnownCall::clear)},
      {Py_tp_dealloc, reinterpret_cast<void*>(&KnownCall::dealloc)},
      {0, nullptr},
  };
  static PyType_Spec spec{
      "softneuro.torch_backend._native.KnownCall", sizeof(KnownCall), 0,
      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
  static auto* const type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  if (type == nullptr) throw py::error_already_set();
  return type;
}

py::object known_call(Recipe recipe) {
  const auto most = [&](const std::vector<size_t>& places) { return places.size() > Recipe::limit; };
  if (most(recipe.inputs) || most(recipe.sizes) || most(recipe.outputs)) {
    throw py::value_error("known_call: more than " + std::to_string(Recipe::limit) + " inputs, sizes or outputs");
  }
  const auto outside = [&](size_t place) { return place >= recipe.arguments; };
  if (recipe.root >= static_cast<py::ssize_t>(recipe.arguments) ||
      std::any_of(recipe.inputs.begin(), recipe.inputs.end(), outside) ||
      std::any_of(recipe.sizes.begin(), recipe.sizes.end(), outside)) {
    throw py::value_error("known_call: no such argument");
  }
  auto* const made = PyObject_GC_New(KnownCall, known_call_type());
  if (made == nullptr) throw py::error_already_set();
  made->call = &KnownCall::vectorcall;
  made->recipe = new Recipe(std::move(recipe));
  PyObject_GC_Track(reinterpret_cast<PyObject*>(made));
  return py::reinterpret_steal<py::object>(reinterpret_cast<PyObject*>(made));
}

}  // namespace

void bind_known_call(py::module_& m) {
  py::class_<KnownWeights, std::shared_ptr<KnownWeights>>(m, "KnownWeights",
                                                          "Weights by the object that all of them are reached from.")
      .def(py::init<>())
      .def("set", &KnownWeights::set, py::arg("root"), py::arg("weights"), py::arg("state"),
           "root: the object, kept by a weak reference, or None if they are always the same; weights: a TensorSet; "
           "state: the ObjectState of all that leads from the root to them, which it does while that holds, or None.")
      .def(
          "find",
          [](const KnownWeights& known, const py::object& root) -> py::object {
            const auto found = known.find(root.ptr());
            return found ? py::object(py::make_tuple(found->identity, found->epoch)) : py::none();
          },
          py::arg("root"), "(identity, epoch) of what the root is known to lead to, or None.");
  m.def(
      "known_call",
      [](std::shared_ptr<Region> region, uintptr_t host, py::object without_net, py::object otherwise,
         py::list listeners, std::shared_ptr<KnownWeights> weights, size_t arguments, py::ssize_t root,
         std::vector<size_t> inputs, std::vector<size_t> sizes, std::vector<size_t> outputs, const py::type& tensor,
         size_t place) {
        Recipe recipe{std::move(region),
                      reinterpret_cast<const KnownRun*>(host),
                      std::move(without_net),
                      std::move(otherwise),
                      std::move(listeners),
                      std::move(weights),
                      arguments,
                      root,
                      std::move(inputs),
                      std::move(sizes),
                      std::move(outputs),
                      reinterpret_cast<PyTypeObject*>(tensor.ptr()),
                      place};
        return known_call(std::move(recipe));
      },
      py::kw_only(), py::arg("region").none(false), py::arg("host"), py::arg("without_net") = py::none(),
      py::arg("otherwise"), py::arg("listeners"), py::arg("weights"), py::arg("arguments"), py::arg("root"),
      py::arg("inputs"), py::arg("sizes"), py::arg("outputs"), py::arg("tensor"), py::arg("place"),
      "A callable of `arguments` positional arguments that runs a region's net, where one is ready for weights that "
      "are known and have not changed, and returns the list of its chosen outputs. Where there are such weights but no "
      "net, what `without_net` returns, if given; else, and while there are listeners, what `otherwise` returns. root, "
      "inputs, sizes: places of arguments, root -1 for None. host: address of a KnownRun. tensor: the class "
      "that inputs are of, place: of torch's object within one. Raises ValueError for more than 16 of one kind and for "
      "a place that is none.");
}

}  // namespace softneuro::native
