"""From a graph of Dynamo's or of an exported program to a functional one of ATen ops."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch._C import DispatchKey
from torch._decomp.decompositions import upsample_compute_output_size
from torch._dynamo.convert_frame import compile_lock
from torch._functorch.aot_autograd import aot_module_simplified
from torch._ops import OpOverload
from torch.fx import GraphModule

Compiler = Callable[[GraphModule, Sequence[Any]], Any]
Kernel = Callable[..., Any]

_KEYS = (DispatchKey.Autograd, DispatchKey.CompositeImplicitAutograd)
_SHRINKS = ("hardshrink", "softshrink")


def trace_inference(
    module: GraphModule, inputs: Sequence[Any], compiler: Compiler, *, whole: bool = True
) -> Callable[..., Any]:
    """What calls the compiler's result for the functional graph; without gradients.

    With `whole`, ops stay what they are, so that the host runs the very kernels that eager would.
    """
    with _kept_whole() if whole else contextlib.nullcontext():
        return aot_module_simplified(
            module, list(inputs), fw_compiler=compiler, inference_compiler=compiler, decompositions={}
        )


def _kernels() -> Iterator[tuple[OpOverload, Kernel | None]]:
    """The ops that torch would decompose, and what to do instead; None: nothing but what C++ does."""
    for name in dir(torch.ops.aten):
        packet = getattr(torch.ops.aten, name)
        if name in _SHRINKS:
            yield packet.default, None
        elif "upsample" in name and not name.endswith(("_aa", "_backward")):
            yield packet.default, None
            yield packet.vec, _with_sizes(packet.default)


def _with_sizes(op: OpOverload) -> Kernel:
    """For the overload of sizes or factors, whose C++ takes no symbolic sizes: the overload that it comes down to."""

    def resample(x: torch.Tensor, output_size: Any, *rest: Any) -> Any:
        *corners, factors = rest
        sizes = upsample_compute_output_size(x.size(), output_size, factors)
        return op(x, sizes, *corners, *(factors or [None] * len(sizes)))

    return resample


@contextlib.contextmanager
def _kept_whole() -> Iterator[None]:
    """Without decompositions that `decompositions` does not decide on, as they are below autograd.

    Torch has them for all that trace: resampling, for one, becomes gathers and arithmetic, several times as slow.
    """
    taken: list[tuple[OpOverload, DispatchKey, Kernel]] = []
    with compile_lock:  # nothing else is to be traced meanwhile
        try:
            for op, instead in _kernels():
                for key in _KEYS:
                    if key in op.py_kernels:
                        taken.append((op, key, op.py_kernels.pop(key)))
                        if instead is not None:
                            op.py_kernels[key] = instead
                op._dispatch_cache.clear()
            yield
        finally:
            for op, key, kernel in taken:
                op.py_kernels[key] = kernel
                op._dispatch_cache.clear()
