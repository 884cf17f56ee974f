"""The ONNX Runtime front door: a plugin execution provider and a custom-op library in one file.

    import softneuro.providers
    session = softneuro.providers.session("model.onnx")

or, where a program makes its sessions itself,

    onnxruntime.register_execution_provider_library("softneuro", softneuro.providers.get_library_path())

The import needs no ONNX Runtime; `register` and `session` do, 1.25 or later.
"""

from softneuro.providers.calibrate import calibrate
from softneuro.providers.convert import convert
from softneuro.providers.library import get_ep_name, get_ep_names, get_library_path, register
from softneuro.providers.report import explain
from softneuro.providers.sessions import session
from softneuro.providers.to_qdq import to_qdq
from softneuro.providers.tune_within import tune

__all__ = [
    "calibrate",
    "convert",
    "explain",
    "get_ep_name",
    "get_ep_names",
    "get_library_path",
    "register",
    "session",
    "to_qdq",
    "tune",
]
