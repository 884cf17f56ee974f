"""Reductions over axes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from softneuro.torch_backend.compile.converters.registry import Call, aten, converter
from softneuro.torch_backend.compile.ops.reals import INTEGERS, REALS

if TYPE_CHECKING:
    from softneuro.torch_backend.compile.conversion.lowering import Lowering


def _check(call: Call) -> str | None:
    if call.has("dtype") and call["dtype"] not in (None, *REALS, *INTEGERS):
        return f"its result is {call['dtype']}"
    return "it is on a scalar" if call.rank() == 0 else None


_FUNCTIONS = {
    aten.mean.dim: "mean",
    aten.mean.default: "mean",
    aten.sum.dim_IntList: "sum",
    aten.sum.default: "sum",
    aten.amax.default: "amax",
    aten.amin.default: "amin",
}


_POOLINGS = {"mean": "avg", "amax": "max"}


@converter(*_FUNCTIONS, check=_check)
def reduce(low: Lowering, call: Call) -> int:
    """What some axes come to; over an image's axes a pooling, if there is one: it has routines for every layout."""
    rank = call.rank()
    function = _FUNCTIONS[call.node.target]
    axes = call.axes("dim", rank) if call.has("dim") else list(range(rank))
    keepdim = bool(call.has("keepdim") and call["keepdim"])
    source = low.blob(call["self"])
    if rank == 4 and axes == [2, 3] and function in _POOLINGS:
        pooled = low.add("adaptive_pool2d", [source], function=_POOLINGS[function], output_size=[1, 1])
        return pooled if keepdim else low.add("reshape", [pooled], shape=list(call.output_shape))
    return low.add("reduce", [source], function=function, axes=axes, keepdim=int(keepdim))
