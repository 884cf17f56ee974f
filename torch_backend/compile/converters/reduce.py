"""Reductions over axes."""

from __future__ import annotations

import math
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

_NORMS = {1: "norm1", 2: "norm2", math.inf: "amax", -math.inf: "amin"}


def _known_norm(call: Call) -> str | None:
    return None if call["ord"] in _NORMS else f"ord={call['ord']} is not supported"


@converter(aten.linalg_vector_norm.default, check=(_check, _known_norm))
def vector_norm(low: Lowering, call: Call) -> int:
    """A norm of what lies along axes; the greatest or least magnitude where it is of infinite order."""
    rank, blob, function = call.rank(), low.blob(call["self"]), _NORMS[call["ord"]]
    if not function.startswith("norm"):
        blob = low.add("binary", [blob], function="abs")
    keepdim = int(bool(call["keepdim"]))
    return low.add("reduce", [blob], function=function, axes=call.axes("dim", rank), keepdim=keepdim)


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
