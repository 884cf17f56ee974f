"""Where the library is, and how ONNX Runtime gets to know it."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import softneuro

OLDEST_RUNTIME = (1, 25)
REGISTRATION = "softneuro"
_EP_NAME = "SoftNeuroExecutionProvider"
_lock = threading.Lock()


def get_library_path() -> str:
    """Absolute path of the library that ONNX Runtime loads, as provider plugin or as custom-op library.

    Raises:
        Error: the file is not there.
    """
    path = Path(__file__).parent / "libsoftneuro_ort.so"
    if not path.exists():
        raise softneuro.Error(f"{path} is missing: reinstall softneuro")
    return str(path)


def get_ep_names() -> list[str]:
    """Names of the execution providers in the library."""
    return [_EP_NAME]


def get_ep_name() -> str:
    """Name of the library's one execution provider."""
    return _EP_NAME


def runtime() -> Any:
    """The module onnxruntime. Raises softneuro.Error if it is missing or too old for provider plugins."""
    try:
        import onnxruntime
    except ImportError as error:
        raise softneuro.Error("onnxruntime is not installed: pip install 'softneuro[onnxruntime]'") from error
    version = tuple(int(part) for part in onnxruntime.__version__.split(".")[:2])
    if version < OLDEST_RUNTIME:
        raise softneuro.Error(
            f"this is onnxruntime {onnxruntime.__version__}; the provider needs "
            f"{'.'.join(map(str, OLDEST_RUNTIME))} or later: pip install --upgrade onnxruntime"
        )
    return onnxruntime


def devices() -> list[Any]:
    """What to give to SessionOptions.add_provider_for_devices; empty while the library is not registered."""
    return [device for device in runtime().get_ep_devices() if device.ep_name == _EP_NAME]


def register() -> None:
    """Makes the provider known to ONNX Runtime, for all sessions of the process. Further calls do nothing.

    Raises:
        Error: onnxruntime is missing or too old, or refuses the library.
    """
    with _lock:
        if devices():
            return
        path = get_library_path()
        try:
            runtime().register_execution_provider_library(REGISTRATION, path)
        except Exception as error:
            raise softneuro.Error(f"ONNX Runtime does not load {path}: {error}") from error
