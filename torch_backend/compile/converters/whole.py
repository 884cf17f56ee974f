"""Integers and booleans: what masks and positions are made of, and rows that integers choose."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torch
from torch.fx import Node

from softneuro.torch_backend.compile.converters.registry import Call, Check, Convert, aten, converter
from softneuro.torch_backend.compile.ops.reals import REALS, WHOLE

if TYPE_CHECKING:
    from softneuro.torch_backend.compile.conversion.lowering import Lowering

_INDICES = (torch.int64, torch.int32)


def _given_as(*dtypes: torch.dtype) -> Check:
    """Declines results of other types."""

    def check(call: Call) -> str | None:
        dtype = call.output.dtype
        return None if dtype in dtypes else f"its result is {str(dtype).removeprefix('torch.')}"

    return check


def _indices(name: str) -> Check:
    """Declines indices that are none."""

    def check(call: Call) -> str | None:
        dtype = call.value(call.args[name]).dtype
        return None if dtype in _INDICES else f"its {name} are {str(dtype).removeprefix('torch.')}"

    return check


@converter(aten.embedding.default, check=_indices("indices"), whole=True)
def embedding(low: Lowering, call: Call) -> int:
    """Rows of a matrix: a constant one stays where the host has it."""
    if not call.is_constant("weight"):
        return low.add("take", [low.value(call["weight"]), low.value(call["indices"])], axis=0)
    return low.add("embedding", [low.value(call["indices"])], {"weight": low.constant(call["weight"])})


@converter(aten.index_select.default, check=_indices("index"), whole=True)
def index_select(low: Lowering, call: Call) -> int:
    """What lies at given indices of an axis."""
    blobs = [low.value(call["self"]), low.value(call["index"])]
    return low.add("take", blobs, axis=call.axis("dim", call.rank()))


def _has_axes(call: Call) -> str | None:
    return None if call.rank() else "it is on a scalar"


@converter(aten.gather.default, check=(_has_axes, _indices("index")), whole=True)
def gather(low: Lowering, call: Call) -> int:
    """What lies at the index of each place along an axis."""
    blobs = [low.value(call["self"]), low.value(call["index"])]
    return low.add("gather", blobs, axis=call.axis("dim", call.rank()))


def _places(call: Call) -> str | None:
    """Indices of neighbouring axes."""
    listed = call.args["indices"]
    given = [axis for axis, node in enumerate(listed) if node is not None]
    if given != list(range(given[0], given[-1] + 1)):
        return "its axes are apart"
    for node in (listed[axis] for axis in given):
        if call.value(node).dtype not in _INDICES:
            return "it chooses by truth values"
    return None


@converter(aten.index.Tensor, check=_places, whole=True)
def index(low: Lowering, call: Call) -> int:
    """What lies at given indices of one axis, or of several that are taken as one."""
    listed, shape = call["indices"], call.shape("self")
    given = [axis for axis, node in enumerate(listed) if node is not None]
    first, last, blob = given[0], given[-1], low.value(call["self"])
    if len(given) == 1 and not call.is_fixed(listed[first]):
        return low.add("take", [blob, low.value(listed[first])], axis=first, from_end=1)
    sizes = shape[first : last + 1]
    if not all(call.is_fixed(listed[axis]) for axis in given):
        return _taken(low, blob, [low.operand(listed[axis], torch.int64) for axis in given], first, shape)
    places = torch.zeros((), dtype=torch.int64)
    for size, axis in zip(sizes, given, strict=True):
        own = low.evaluate(listed[axis]).to(torch.int64)
        if own.numel() and not (-size <= int(own.min()) and int(own.max()) < size):
            raise ValueError("an index is beyond its axis")
        places = places * size + torch.where(own < 0, own + size, own)
    count = int(torch.Size(sizes).numel())
    if places.numel() == count and torch.equal(places.reshape(-1), torch.arange(count)):
        return low.add("reshape", [blob], shape=list(call.output_shape))
    joined = low.add("reshape", [blob], shape=[*shape[:first], count, *shape[last + 1 :]])
    return low.add("take", [joined, low.operand_of(places)], axis=first)


def _taken(low: Lowering, blob: int, indices: list[int], first: int, shape: tuple[int, ...]) -> int:
    """What lies at indices of several axes, each of which is looked up in its own axis, and so may be rejected."""
    last, place = first + len(indices), low.operand(0, torch.int64)
    for size, own in zip(shape[first:last], indices, strict=True):
        known = low.add("take", [low.operand_of(torch.arange(size)), own], axis=0, from_end=1)
        scaled = low.add("integer_binary", [place, low.operand(size, torch.int64)], function="mul")
        place = low.add("integer_binary", [scaled, known], function="add")
    count = int(torch.Size(shape[first:last]).numel())
    joined = low.add("reshape", [blob], shape=[*shape[:first], count, *shape[last:]])
    return low.add("take", [joined, place], axis=first)


@converter(aten.where.self, check=_given_as(*REALS, *WHOLE), whole=True)
def where(low: Lowering, call: Call) -> int:
    """One of two values at each place."""
    return _where(low, call, call["condition"], call["self"], call["other"])


@converter(aten.masked_fill.Scalar, aten.masked_fill.Tensor, check=_given_as(*REALS, *WHOLE), whole=True)
def masked_fill(low: Lowering, call: Call) -> int:
    """A number where a mask is true."""
    return _where(low, call, call["mask"], call["value"], call["self"])


def _where(low: Lowering, call: Call, condition: Node, yes: Any, no: Any) -> int:
    dtype = call.output.dtype if call.output.dtype in WHOLE else torch.float32
    blobs = [low.operand(condition, torch.bool), low.operand(yes, dtype), low.operand(no, dtype)]
    return low.add("where", blobs)


def _compares(call: Call) -> str | None:
    """Integers of eight bits and float64 are compared by the host."""
    dtype = _common_type(call)
    return None if dtype in (*REALS, *WHOLE) else f"it compares {str(dtype).removeprefix('torch.')}"


def _common_type(call: Call) -> torch.dtype:
    """The type in which the host compares."""
    values = [call.value(x) if isinstance(x, Node) else x for x in (call.args["self"], call.args["other"])]
    if any(isinstance(value, torch.SymInt | torch.SymFloat) for value in values):
        values = [1 if isinstance(v, torch.SymInt) else 1.0 if isinstance(v, torch.SymFloat) else v for v in values]
    return torch.result_type(*values)


def _comparison(function: str) -> Convert:
    def convert(low: Lowering, call: Call) -> int:
        operands, dtype = (call["self"], call["other"]), _common_type(call)
        if dtype not in WHOLE or not low.is_whole(*operands):
            dtype = torch.float32
        return low.add("compare", [low.operand(x, dtype) for x in operands], function=function)

    return convert


for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    _op = getattr(aten, _name)
    converter(_op.Tensor, _op.Scalar, check=_compares, whole=True)(_comparison(_name))


def _logical(function: str) -> Convert:
    def convert(low: Lowering, call: Call) -> int:
        names = ("self", "other") if call.has("other") else ("self",)
        return low.add("logical", [low.operand(call[name], torch.bool) for name in names], function=function)

    return convert


for _name in ("and", "or", "xor", "not"):
    _logic, _bits = getattr(aten, f"logical_{_name}"), getattr(aten, f"bitwise_{_name}")
    converter(_logic.default, whole=True)(_logical(_name))
    _overload = _bits.default if _name == "not" else _bits.Tensor
    converter(_overload, check=_given_as(torch.bool), whole=True)(_logical(_name))


def _same_kind(call: Call) -> str | None:
    """Reals of one type, or integers."""
    given, made = call.value(call.args["self"]).dtype, call.output.dtype
    return None if given == made or made in _INDICES else f"it makes {made} of {given}"


@converter(aten.cumsum.default, check=(_given_as(*REALS, *_INDICES), _same_kind), whole=True)
def cumsum(low: Lowering, call: Call) -> int:
    """Sums along an axis."""
    dtype = call.output.dtype
    blob = low.operand(call["self"], dtype if dtype in _INDICES else torch.float32)
    return low.add("cumsum", [blob], axis=call.axis("dim", call.rank())) if call.rank() else blob


def _ordered(call: Call) -> str | None:
    """Halves have equal values where what they are inside a region has not."""
    dtype = call.value(call.args["self"]).dtype
    return None if dtype in (torch.float32, *_INDICES) else f"it compares {dtype}"


def _places_of(function: str) -> Convert:
    def convert(low: Lowering, call: Call) -> int:
        blob, axis, keepdim = low.value(call["self"]), 0, int(bool(call["keepdim"]))
        if call["dim"] is not None:
            axis = call.axis("dim", call.rank())
            return low.add("arg_reduce", [blob], function=function, axis=axis, keepdim=keepdim)
        flat = low.add("reshape", [blob], shape=[math.prod(call.shape("self"))])
        found = low.add("arg_reduce", [flat], function=function, axis=0)
        return low.add("reshape", [found], shape=list(call.output_shape)) if keepdim else found

    return convert


# At the rim of a region the host takes them: what is equal to it but for the last bit is no index more or less.
converter(aten.argmax.default, check=(_has_axes, _ordered), moves_only=True, whole=True)(_places_of("argmax"))
converter(aten.argmin.default, check=(_has_axes, _ordered), moves_only=True, whole=True)(_places_of("argmin"))
