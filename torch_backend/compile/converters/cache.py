"""Caches that a graph writes to where they are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch.fx import Node

from softneuro.torch_backend.compile.converters.registry import Call, aten, converter
from softneuro.torch_backend.compile.ops.borders import TYPES
from softneuro.torch_backend.compile.ops.reals import REALS

if TYPE_CHECKING:
    from softneuro.torch_backend.compile.conversion.lowering import Lowering

_INDICES = (torch.int64, torch.int32)


def _rows_of_input(call: Call, places: Any, rows: Node) -> str | None:
    """Rows of a dense input at places along one axis."""
    cache = call.args["self"]
    if cache.op != "placeholder":
        return "it writes to what is no input"
    if not call.value(cache).is_contiguous():
        return "it writes to a tensor that is not contiguous"
    index = call.value(places)
    if index.dtype not in _INDICES:
        return f"its indices are {str(index.dtype).removeprefix('torch.')}"
    if index.dim() != 1:
        return f"its indices have {index.dim()} axes"
    if call.value(rows).dtype != call.output.dtype:
        return "it converts what it writes"
    return None


def _copies_rows(call: Call) -> str | None:
    if call.rank() == 0:
        return "it has no axis"
    return _rows_of_input(call, call.args["index"], call.args["source"])


def _puts_rows(call: Call) -> str | None:
    given = [node for node in call.args["indices"] if node is not None]
    if len(given) != 1:
        return "its indices are of several axes"
    if call.args["accumulate"]:
        return "it adds to what is there"
    return _rows_of_input(call, given[0], call.args["values"])


@converter(aten.index_copy_.default, check=_copies_rows, whole=True)
def index_copy(low: Lowering, call: Call) -> int:
    """Rows at places, none of which count from the end."""
    return _put(low, call, call.axis("dim", call.rank()), call["index"], call["source"], from_end=0)


@converter(aten.index_put_.default, check=_puts_rows, whole=True)
def index_put(low: Lowering, call: Call) -> int:
    """Rows at places, perhaps one row at all of them."""
    axis = next(axis for axis, node in enumerate(call["indices"]) if node is not None)
    return _put(low, call, axis, call["indices"][axis], call["values"], from_end=1)


def _put(low: Lowering, call: Call, axis: int, places: Node, rows: Node, *, from_end: int) -> int:
    dtype = call.output.dtype
    of_reals = dtype in REALS
    put = low.operand(rows, torch.float32 if of_reals else dtype)
    shape = list(call.shape("self"))
    shape[axis] = call.value(places).shape[0]
    if list(call.value(rows).shape) != shape:
        put = low.add("expand", [put], shape=shape)
    named: dict[str, Any] = {"storage": TYPES[dtype]} if of_reals else {}
    blobs = [low.stored(call["self"]), put, low.value(places)]
    return low.add("put", blobs, axis=axis, from_end=from_end, **named)
