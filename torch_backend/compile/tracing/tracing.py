"""From a graph of Dynamo's or of an exported program to a functional one of ATen ops."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch._C import DispatchKey
from torch._decomp.decompositions import upsample_compute_output_size
from torch._dynamo.convert_frame import compile_lock
from torch._functorch.aot_autograd import aot_module_simplified
from torch._guards import detect_fake_mode
from torch._ops import OpOverload
from torch.fx import GraphModule

Compiler = Callable[[GraphModule, Sequence[Any]], Any]
Kernel = Callable[..., Any]
aten = torch.ops.aten

_KEYS = (DispatchKey.Autograd, DispatchKey.CompositeImplicitAutograd)
_SHRINKS = ("hardshrink", "softshrink")


def trace_inference(
    module: GraphModule, inputs: Sequence[Any], compiler: Compiler, *, whole: bool = True
) -> Callable[..., Any]:
    """What calls the compiler's result for the functional graph; without gradients.

    With `whole`, ops stay what they are, so that the host runs the very kernels that eager would.
    """
    fake = detect_fake_mode(inputs)
    with _symbols_alone(fake.shape_env if fake is not None else None), _traced_so(dict(_kernels(whole))):
        return aot_module_simplified(
            module, list(inputs), fw_compiler=compiler, inference_compiler=compiler, decompositions={}
        )


@contextlib.contextmanager
def _symbols_alone(shapes: Any) -> Iterator[None]:
    """Without what an exported program that was saved knows beside its symbols: values of expressions in them.

    AOT Autograd takes all of these for symbols.
    """
    known: dict[Any, Any] = getattr(shapes, "backed_var_to_val", {})
    others = {key: known.pop(key) for key in list(known) if not key.is_symbol}
    try:
        yield
    finally:
        known.update(others)


def _kernels(whole: bool) -> Iterator[tuple[OpOverload, Kernel | None]]:
    """The ops that torch would decompose, and what to do instead; None: nothing but what C++ does."""
    yield aten.instance_norm.default, _instance_norm
    for name in dir(aten) if whole else ():
        packet = getattr(aten, name)
        if name in _SHRINKS:
            yield packet.default, None
        elif "upsample" in name and not name.endswith(("_aa", "_backward")):
            yield packet.default, None
            yield packet.vec, _with_sizes(packet.default)


def _instance_norm(x: torch.Tensor, weight: torch.Tensor | None, bias: torch.Tensor | None, *rest: Any) -> Any:
    """A group per channel, or a batch's normalisation; C++ makes images of one batch's, with copies of weights."""
    mean, variance, use_input_stats, momentum, eps, cudnn_enabled = rest
    channels = x.shape[1] if x.dim() > 2 else None
    same = all(t is None or t.dtype == x.dtype for t in (weight, bias))
    if x.device.type == "cpu" and same and isinstance(channels, int):
        if not use_input_stats and mean is not None and variance is not None:
            return aten.batch_norm(x.contiguous(), weight, bias, mean, variance, False, momentum, eps, cudnn_enabled)
        if use_input_stats and mean is None and variance is None:
            plane = math.prod(x.shape[2:])
            return aten.native_group_norm(x.contiguous(), weight, bias, x.shape[0], channels, plane, channels, eps)[0]
    return aten.instance_norm.default._op_dk(DispatchKey.CompositeImplicitAutograd, x, weight, bias, *rest)


def _with_sizes(op: OpOverload) -> Kernel:
    """For the overload of sizes or factors, whose C++ takes no symbolic sizes: the overload that it comes down to."""

    def resample(x: torch.Tensor, output_size: Any, *rest: Any) -> Any:
        *corners, factors = rest
        sizes = upsample_compute_output_size(x.size(), output_size, factors)
        return op(x, sizes, *corners, *(factors or [None] * len(sizes)))

    return resample


@contextlib.contextmanager
def _traced_so(kernels: dict[OpOverload, Kernel | None]) -> Iterator[None]:
    """With these in the place of decompositions that `decompositions` does not decide on: below autograd, or C++'s own.

    Torch has them for all that trace: resampling, for one, becomes gathers and arithmetic, several times as slow.
    """
    before = {op: dict(op.py_kernels) for op in kernels}
    with compile_lock:  # nothing else is to be traced meanwhile
        try:
            for op, instead in kernels.items():
                for key in _KEYS:
                    known = op.py_kernels.pop(key, None)
                    own = key is DispatchKey.CompositeImplicitAutograd and op.has_kernel_for_dispatch_key(key)
                    if instead is not None and (known is not None or own):
                        op.py_kernels[key] = instead
                op._dispatch_cache.clear()
            yield
        finally:
            for op, known in before.items():
                op.py_kernels.clear()
                op.py_kernels.update(known)
                op._dispatch_cache.clear()
