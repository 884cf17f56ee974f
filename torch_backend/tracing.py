"""From a graph of Dynamo's or of an exported program to a functional one of ATen ops."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch._C import DispatchKey
from torch._functorch.aot_autograd import aot_module_simplified
from torch._ops import OpOverload
from torch.fx import GraphModule

Compiler = Callable[[GraphModule, Sequence[Any]], Any]

_lock = threading.RLock()


def trace_inference(module: GraphModule, inputs: Sequence[Any], compiler: Compiler) -> Callable[..., Any]:
    """What calls the compiler's result for the functional graph; without gradients.

    No decompositions: what stays on the host runs the very kernels that eager would.
    """
    with _resampling_whole():
        return aot_module_simplified(
            module, list(inputs), fw_compiler=compiler, inference_compiler=compiler, decompositions={}
        )


def _resampling() -> Iterator[OpOverload]:
    for name in dir(torch.ops.aten):
        if "upsample" in name:
            packet = getattr(torch.ops.aten, name)
            for overload in packet.overloads():
                yield getattr(packet, overload)


@contextlib.contextmanager
def _resampling_whole() -> Iterator[None]:
    """Torch decomposes resampling into gathers and arithmetic for all that trace: below autograd, beyond what
    `decompositions` decides. Without these decompositions its kernels stay one op.
    """
    taken = []
    with _lock:
        try:
            for op in _resampling():
                for key in (DispatchKey.Autograd, DispatchKey.CompositeImplicitAutograd):
                    if key in op.py_kernels:
                        taken.append((op, key, op.py_kernels.pop(key)))
                        op._dispatch_cache.clear()
            yield
        finally:
            for op, key, kernel in taken:
                op.py_kernels[key] = kernel
                op._dispatch_cache.clear()
