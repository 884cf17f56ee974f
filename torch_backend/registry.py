"""Regions alive in this process, by handle."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import softneuro

if TYPE_CHECKING:
    from softneuro.torch_backend.call.runtime import RegionRuntime

_regions: dict[str, RegionRuntime] = {}
_lock = threading.Lock()


def add(content: str, runtime: RegionRuntime) -> str:
    """Registers a region and returns its handle.

    The handle is the content's hash and a count among equal regions alive: the same in the next process, which may run
    code that torch has cached on disk, yet apart for two models of one architecture.
    """
    with _lock:
        count = 0
        while f"{content}.{count}" in _regions:
            count += 1
        handle = f"{content}.{count}"
        _regions[handle] = runtime
    return handle


def remove(handle: str) -> None:
    """Forgets a region and frees its nets."""
    with _lock:
        _regions.pop(handle, None)
    softneuro._C.region_drop(handle)


def find(handle: str) -> RegionRuntime:
    """The region of a handle. Raises softneuro.Error if this process has not compiled it."""
    runtime = _regions.get(handle)
    if runtime is None:
        raise softneuro.Error(
            f"region {handle} is not known in this process: the code that calls it was cached by torch without "
            "softneuro's part; call torch._dynamo.reset() and compile again"
        )
    return runtime


def all_regions() -> list[RegionRuntime]:
    """Every region alive."""
    with _lock:
        return list(_regions.values())
