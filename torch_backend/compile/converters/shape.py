"""Ops that only move or rename elements. Blobs are values: a view and a copy are the same here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch.fx import Node

from softneuro.torch_backend.compile.converters.registry import Call, aten, converter, ranks
from softneuro.torch_backend.compile.ops.reals import WHOLE

if TYPE_CHECKING:
    from softneuro.torch_backend.compile.conversion.lowering import Lowering


# Ops of one tensor: other shapes of the same elements in the same order, and the elements as they are.
RESHAPES = (
    aten.view.default,
    aten._unsafe_view.default,
    aten.reshape.default,
    aten.squeeze.default,
    aten.squeeze.dim,
    aten.squeeze.dims,
    aten.unsqueeze.default,
)
COPIES = (aten.clone.default, aten.detach.default, aten.alias.default)
# Ops of one tensor, whose elements they leave as they are.
MOVES = {*RESHAPES, *COPIES, aten.permute.default, aten.transpose.int, aten.t.default}


@converter(*RESHAPES, moves_only=True, whole=True)
def reshape(low: Lowering, call: Call) -> int:
    """Another shape for the same elements in the same order."""
    return low.add("reshape", [low.value(call["self"])], shape=list(call.output_shape))


@converter(*COPIES, aten.lift_fresh_copy.default, moves_only=True, whole=True)
def identity(low: Lowering, call: Call) -> int:
    """A copy or an alias."""
    return low.value(call["self"])


def _number(call: Call) -> str | None:
    return None if isinstance(call.args.get("fill_value", 0), int | float) else "what it fills with is no number"


@converter(aten.zeros_like.default, aten.full_like.default, check=_number, moves_only=True, whole=True)
def filled(low: Lowering, call: Call) -> int:
    """One number everywhere, in the shape of a tensor."""
    number = call["fill_value"] if call.has("fill_value") else 0
    dtype = call.output.dtype if low.is_whole(call["self"]) and call.output.dtype in WHOLE else torch.float32
    return low.operand_of(torch.full(call.output_shape, number, dtype=dtype))


@converter(aten.permute.default, moves_only=True, whole=True)
def permute(low: Lowering, call: Call) -> int:
    """Axes in another order."""
    rank = call.rank()
    return low.add("transpose", [low.value(call["self"])], perm=[int(d) % max(rank, 1) for d in call["dims"]])


def swap(low: Lowering, call: Call, first: int, second: int) -> int:
    """Two axes exchanged."""
    perm = list(range(call.rank()))
    perm[first], perm[second] = perm[second], perm[first]
    return low.add("transpose", [low.value(call["self"])], perm=perm)


@converter(aten.transpose.int, moves_only=True, whole=True)
def transpose(low: Lowering, call: Call) -> int:
    """Two given axes exchanged."""
    rank = call.rank()
    return swap(low, call, call.axis("dim0", rank), call.axis("dim1", rank))


@converter(aten.t.default, moves_only=True, whole=True)
def t(low: Lowering, call: Call) -> int:
    """A matrix transposed; a vector as it is."""
    return low.value(call["self"]) if call.rank() < 2 else swap(low, call, 0, 1)


def _equal(before: Sequence[Any], after: Sequence[Any]) -> bool:
    return len(before) == len(after) and all(a is b or a == b for a, b in zip(before, after, strict=True))


@converter(aten.expand.default, moves_only=True, whole=True)
def expand(low: Lowering, call: Call) -> int:
    """Axes of size one repeated, and new ones in front."""
    blob, shape = low.value(call["self"]), list(call.output_shape)
    return blob if _equal(call.shape("self"), shape) else low.add("expand", [blob], shape=shape)


def _same_places(call: Call) -> str | None:
    """Strides along axes of one index do not matter: the host restates some after a mean of channels-last images."""
    before, size, stride = call.value(call.args["self"]), call.args["size"], call.args["stride"]
    if call.args["storage_offset"] not in (None, 0) or not _equal(before.shape, size):
        return "it is another view of its memory"
    kept = [i for i, n in enumerate(size) if not (isinstance(n, int) and n == 1)]
    same = _equal([before.stride(i) for i in kept], [stride[i] for i in kept])
    return None if same else "it is another view of its memory"


@converter(aten.as_strided.default, check=_same_places, moves_only=True, whole=True)
def as_strided(low: Lowering, call: Call) -> int:
    """A view of memory that is the tensor itself."""
    return low.value(call["self"])


@converter(aten.slice.Tensor, moves_only=True, whole=True)
def slice_(low: Lowering, call: Call) -> int:
    """Part of one axis; out-of-range bounds are cut as the host does."""
    axis = call.axis("dim", call.rank())
    start, end, step = slice(call["start"], call["end"], call["step"]).indices(call.shape("self")[axis])
    end = max(start, end)
    return low.add("slice", [low.value(call["self"])], axis=axis, start=start, end=end, step=step)


def at_index(low: Lowering, call: Call, axis: int, index: int) -> int:
    """One index of an axis, which disappears."""
    sliced = low.add("slice", [low.value(call["self"])], axis=axis, start=index, end=index + 1)
    return low.add("reshape", [sliced], shape=list(call.output_shape))


@converter(aten.select.int, moves_only=True, whole=True)
def select(low: Lowering, call: Call) -> int:
    """One index of an axis, which disappears."""
    axis = call.axis("dim", call.rank())
    index = int(call["index"]) % call.shape("self")[axis]
    return at_index(low, call, axis, index)


@converter(aten.unbind.int, moves_only=True, whole=True, many=True)
def unbind(low: Lowering, call: Call) -> list[int]:
    """Every index of an axis apart."""
    axis = call.axis("dim", call.rank())
    return [at_index(low, call, axis, i) for i in range(call.shape("self")[axis])]


@converter(aten.split.Tensor, aten.split_with_sizes.default, moves_only=True, whole=True, many=True)
def split(low: Lowering, call: Call) -> list[int]:
    """Consecutive ranges of an axis."""
    axis = call.axis("dim", call.rank())
    source, blobs, start = low.value(call["self"]), [], 0
    for piece in call.output:
        end = start + piece.shape[axis]
        blobs.append(low.add("slice", [source], axis=axis, start=start, end=end))
        start = end
    return blobs


def _old_empty(call: Call) -> str | None:
    values = [call.value(node) for node in call["tensors"]]
    return None if len({value.dim() for value in values}) == 1 else "its operands differ in rank"


def joined(low: Lowering, call: Call, node: Node) -> int:
    """One of the tensors that become one, in its type."""
    if not low.is_whole(*call["tensors"]):
        return low.blob(node)
    return low.operand(node, call.output.dtype)


@converter(aten.cat.default, check=_old_empty, moves_only=True, whole=True)
def cat(low: Lowering, call: Call) -> int:
    """Tensors one after the other along an axis."""
    axis = call.axis("dim", len(call.output_shape))
    return low.add("concat", [joined(low, call, node) for node in call["tensors"]], axis=axis)


@converter(aten.stack.default, moves_only=True, whole=True)
def stack(low: Lowering, call: Call) -> int:
    """Tensors one after the other along a new axis."""
    shape = list(call.output_shape)
    axis = call.axis("dim", len(shape))
    shape[axis] = 1
    parts = [low.add("reshape", [joined(low, call, node)], shape=shape) for node in call["tensors"]]
    return low.add("concat", parts, axis=axis)


@converter(aten.channel_shuffle.default, aten.native_channel_shuffle.default, check=ranks("self", 4), moves_only=True)
def channel_shuffle(low: Lowering, call: Call) -> int:
    """Channels dealt out over groups."""
    n, c, h, w = call.shape("self")
    groups = int(call["groups"])
    grouped = low.add("reshape", [low.blob(call["self"])], shape=[n, groups, c // groups, h, w])
    swapped = low.add("transpose", [grouped], perm=[0, 2, 1, 3, 4])
    return low.add("reshape", [swapped], shape=[n, c, h, w])
