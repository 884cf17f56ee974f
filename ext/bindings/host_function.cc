// A Python function as a step of a net.
#include <memory>
#include <string>
#include <utility>

#include "base/error.h"
#include "ext/bindings/bindings.h"
#include "layers/host/host.h"

namespace softneuro::bindings {
namespace {

// A view, no copy. NumPy has no other way to say that an array is not to be written to.
py::array array_of(const TensorView& view, bool writable) {
  const std::vector<py::ssize_t> shape(view.shape.begin(), view.shape.end());
  std::vector<py::ssize_t> strides;
  for (int axis = 0; axis < view.shape.rank(); ++axis)
    strides.push_back(view.strides[static_cast<size_t>(axis)] * dtype_bits(view.schema.dtype) / 8);
  py::array array(numpy_type(view.schema.dtype), shape, strides, view.data, py::none());
  if (!writable) py::detail::array_proxy(array.ptr())->flags &= ~py::detail::npy_api::NPY_ARRAY_WRITEABLE_;
  return array;
}

py::list arrays_of(std::span<const TensorView> views, bool writable) {
  py::list arrays(views.size());
  for (size_t i = 0; i < views.size(); ++i) arrays[i] = array_of(views[i], writable);
  return arrays;
}

std::string message_of(const py::error_already_set& error) {
  return std::string(py::str(error.type().attr("__name__"))) + ": " + std::string(py::str(error.value()));
}

}  // namespace

HostOp host_function(py::function function, const py::sequence& outputs, bool read_only, bool strided) {
  HostOp host;
  host.strided = strided;
  for (const auto& output : outputs) {
    const auto [shape, dtype] = py::cast<std::pair<py::sequence, std::string>>(output);
    host.outs.push_back(desc_of(to_shape(shape), parse_dtype(dtype)));
  }
  // The last net that calls it may go in any thread, without the GIL.
  const std::shared_ptr<const py::function> held(new py::function(std::move(function)), [](const py::function* last) {
    const py::gil_scoped_acquire gil;
    delete last;
  });
  host.run = [held, read_only](std::span<const TensorView> in, std::span<const TensorView> outs) {
    const py::gil_scoped_acquire gil;
    try {
      (*held)(arrays_of(in, !read_only), arrays_of(outs, true));
    } catch (const py::error_already_set& error) {
      // Whoever presses Ctrl-C is heard when the run is over.
      if (error.matches(PyExc_KeyboardInterrupt)) PyErr_SetInterrupt();
      throw Error(message_of(error));
    }
  };
  return host;
}

}  // namespace softneuro::bindings
