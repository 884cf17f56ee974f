#include "torch_backend/native/tensor_set.h"

#include <algorithm>
#include <tuple>

namespace softneuro::native {

std::shared_ptr<TensorSet> TensorSet::make(const std::vector<py::object>& tensors, Torch torch,
                                           std::shared_ptr<Region> region) {
  const std::shared_ptr<TensorSet> made(new TensorSet(std::move(torch), std::move(region)));
  made->look_at(tensors);
  const py::cpp_function died = [set = std::weak_ptr(made)](const py::object&) {
    if (const auto those = set.lock()) those->end();
  };
  for (const py::object& tensor : tensors) {
    made->tensors_.push_back(tensor.ptr());
    made->references_.push_back(py::weakref(tensor, died));
  }
  if (made->region_ != nullptr) {
    WeightTable::Addresses addresses;
    for (const uintptr_t address : made->addresses_.cast<std::vector<uintptr_t>>()) {
      addresses.push_back(reinterpret_cast<const void*>(address));
    }
    made->region_->add_weights(std::move(addresses), made->bytes_);
  }
  return made;
}

bool TensorSet::are(const py::sequence& tensors) const {
  const auto list = py::reinterpret_steal<py::object>(PySequence_Fast(tensors.ptr(), "not a sequence"));
  if (!list) throw py::error_already_set();
  PyObject** const items = PySequence_Fast_ITEMS(list.ptr());
  return !ended_ && std::equal(items, items + PySequence_Fast_GET_SIZE(list.ptr()), tensors_.begin(), tensors_.end());
}

std::optional<WeightSet> TensorSet::epoch_of() {
  if (!ended_ && !(watch_ && watch_->unchanged())) {
    std::vector<py::object> tensors;
    for (const py::object& reference : references_) tensors.push_back(referent(reference));
    if (std::any_of(tensors.begin(), tensors.end(), [](const py::object& tensor) { return tensor.is_none(); })) end();
    if (!ended_) look_at(tensors);
  }
  if (ended_) return std::nullopt;
  return bytes_->look();
}

// The snapshot comes first, so that it never shows a change that the counters have not.
void TensorSet::look_at(const std::vector<py::object>& tensors) {
  const py::list list = py::cast(tensors);
  std::optional<TensorWatch> watch;
  if (!torch_.fields.is_none()) watch.emplace(tensors, torch_.fields(list).cast<TensorWatch::Fields>());
  const py::tuple counters = torch_.counters(list);
  const py::object versions = counters[0], addresses = counters[1];
  if (addresses_ && !addresses.equal(addresses_)) return end();
  if (versions_ && !versions.equal(versions_)) bytes_->changed();
  versions_ = versions, addresses_ = addresses;
  watch_ = std::move(watch);
}

void TensorSet::end() {
  if (std::exchange(ended_, true)) return;
  const auto references = std::move(references_);
  if (region_ == nullptr) return;
  const py::gil_scoped_release released;  // whoever holds the region's lock may wait for Python
  region_->drop_weights(bytes_->identity());
}

std::shared_ptr<PaidRuns> TensorSet::learn(std::vector<WatchedWeights::Piece> pieces, bool slices) const {
  const py::gil_scoped_release released;
  return std::make_shared<PaidRuns>(bytes_, bytes_->learn(std::move(pieces), slices));
}

namespace {

using Pieces = std::vector<std::tuple<uintptr_t, size_t, std::vector<int64_t>, std::vector<int64_t>, bool>>;

std::shared_ptr<PaidRuns> learn(const TensorSet& set, const Pieces& given, bool slices) {
  std::vector<WatchedWeights::Piece> pieces;
  for (const auto& [data, element_bytes, sizes, strides, whole] : given) {
    pieces.push_back({reinterpret_cast<const void*>(data), element_bytes, sizes, strides, whole});
  }
  return set.learn(std::move(pieces), slices);
}

}  // namespace

void bind_tensor_set(py::module_& m) {
  py::class_<PaidRuns, std::shared_ptr<PaidRuns>>(m, "PaidRuns", "What a net is made of, for Region.run.")
      .def_property_readonly(
          "made_of", [](const PaidRuns& runs) { return std::pair(runs.made_of().identity, runs.made_of().epoch); },
          "(identity, epoch) of the weights.");
  py::class_<TensorSet, std::shared_ptr<TensorSet>>(
      m, "TensorSet", "The weights of a region as tensors, while all of them live and stay in their memory.")
      .def(py::init([](const std::vector<py::object>& tensors, py::object fields, py::object counters,
                       std::shared_ptr<Region> region) {
             return TensorSet::make(tensors, {std::move(fields), std::move(counters)}, std::move(region));
           }),
           py::arg("tensors"), py::arg("fields"), py::arg("counters"), py::arg("region"),
           "Functions of a list of tensors. fields: what TensorWatch takes, or None; counters: versions and addresses, "
           "raising "
           "RuntimeError for tensors without memory. region: what forgets the set when it ends, or None.")
      .def("are", &TensorSet::are, py::arg("tensors"), "Whether it is these, all alive.")
      .def(
          "epoch_of",
          [](TensorSet& set) -> py::object {
            const auto found = set.epoch_of();
            return found ? py::object(py::make_tuple(found->identity, found->epoch)) : py::none();
          },
          "(identity, epoch) of the weights as they are now; None once a tensor has died or its memory has moved.")
      .def("learn", &learn, py::arg("pieces"), py::arg("slices") = true,
           "Takes the bytes as they are now, unless they are known, for what is about to be made of them. pieces: "
           "(address, bytes of an element, sizes, strides, compare whole) by tensor; slices: whether runs of nets pay "
           "for comparing what else there is.")
      .def_property_readonly(
          "identity", [](const TensorSet& set) { return set.bytes().identity(); }, "As epoch_of() has it.")
      .def(
          "changed", [](TensorSet& set) { set.bytes().changed(); }, py::call_guard<py::gil_scoped_release>(),
          "They have changed: nets made before are not of them.")
      .def("end", &TensorSet::end, "Ends it and drops its nets, and the weak references to the tensors.")
      .def_property_readonly("ended", &TensorSet::ended)
      .def(
          "calls_to_see_all", [](const TensorSet& set, int64_t run_ns) { return set.bytes().calls_to_see_all(run_ns); },
          py::arg("run_ns"),
          "Calls that take so long each after which every byte has been compared; 0 if there is nothing to compare.")
      .def_property_readonly(
          "run_ns", [](const TensorSet& set) { return set.bytes().run_ns(); },
          "What the last run took, in nanoseconds; 0 before any.")
      .def_property_readonly(
          "bytes", [](const TensorSet& set) { return set.bytes().bytes(); }, "How many are compared by turns.")
      .def_property_readonly_static(
          "found", [](const py::object&) { return WatchedWeights::found(); },
          "Changes that only comparing by turns has shown, in this process.");
}

}  // namespace softneuro::native
