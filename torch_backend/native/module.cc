// The Python module `softneuro.torch_backend._native`: what the door of PyTorch alone needs of Python's objects and
// torch's tensors, where a call per object would take longer than a small net.
#include "torch_backend/native/native.h"

PYBIND11_MODULE(_native, m) {
  m.doc() = "What torch's door asks of Python's objects and of tensors.";
  softneuro::native::bind_object_paths(m);
  softneuro::native::bind_object_state(m);
  softneuro::native::bind_tensor_watch(m);
  softneuro::native::bind_tensor_set(m);
  softneuro::native::bind_known_call(m);
}
