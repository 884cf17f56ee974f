"""The ONNX Runtime front door: a plugin execution provider and a custom-op library.

This version has no ONNX Runtime library yet; `get_library_path` says so instead of the import failing.
"""


def get_library_path() -> str:
    """Path of the library to register with ONNX Runtime. Raises RuntimeError while there is none."""
    raise RuntimeError("this version of softneuro has no ONNX Runtime library; use softneuro.torch_backend")
