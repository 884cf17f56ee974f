"""Weights as hosts quantize them: signed bytes, and a scale for all or one per index of an axis."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch._ops import OpOverload
from torch.fx import Node

from softneuro.torch_backend.compile.converters.quantize import DEQUANTIZE
from softneuro.torch_backend.compile.converters.registry import Call, aten
from softneuro.torch_backend.compile.converters.shape import COPIES, MOVES
from softneuro.torch_backend.compile.ops.reals import REALS, is_conversion

_MOVES = MOVES | {aten.expand.default}
_VIEWS = {aten.view.default, aten._unsafe_view.default}
_CHANNELS = "quantized_decomposed.dequantize_per_channel.default"


@dataclass(frozen=True)
class QuantizedWeight:
    """Reals that are products of bytes and scales."""

    stored: torch.Tensor
    scales: torch.Tensor  # of the same shape, stride 0 along all axes but one: so moves show which that becomes

    def t(self) -> QuantizedWeight:
        """A matrix transposed, as tensors have it."""
        return QuantizedWeight(self.stored.t(), self.scales.t())

    def __getitem__(self, index: int) -> QuantizedWeight:
        return QuantizedWeight(self.stored[index], self.scales[index])

    def stride(self, axis: int) -> int:
        """The stride of the bytes."""
        return self.stored.stride(axis)

    @property
    def axes(self) -> list[int]:
        """Along which scales may differ."""
        steps = zip(self.scales.shape, self.scales.stride(), strict=True)
        return [axis for axis, (size, stride) in enumerate(steps) if size > 1 and stride != 0]

    def memory(self) -> tuple[Any, dict[str, Any]]:
        """As the core takes it."""
        axis = next(iter(self.axes), -1)
        scales = self.scales[tuple(slice(None) if other == axis else 0 for other in range(self.scales.dim()))]
        grid = {"scale": scales.reshape(-1).tolist(), "axis": axis, "least": -128, "most": 127}
        return self.stored.contiguous().numpy(), grid


def scaled_bytes(stored: torch.Tensor, scales: torch.Tensor) -> QuantizedWeight | None:
    """Bytes and the scales of one axis, which are broadcast; None if kernels do not take them."""
    scales = scales.detach().to(torch.float32)
    if stored.dtype != torch.int8 or stored.device.type != "cpu" or stored.dim() == 0:
        return None
    if not ((scales > 0) & scales.isfinite()).all():
        return None
    return QuantizedWeight(stored.detach(), scales.expand(stored.shape))


def quantized_weight(node: Node, evaluate: Callable[[Node], Any]) -> QuantizedWeight | None:
    """What a constant is a DQ of, at once or before moves; bytes as they are have a scale of 1.

    `evaluate` gives the value of a constant. None if it is none, or if kernels do not take such weights: theirs
    are signed, lie around zero, and have scales that differ along no more than one axis.
    """
    moves: list[Node] = []
    while node.target in _MOVES or is_conversion(node) or _makes_reals(node):
        if node.all_input_nodes != [node.args[0]]:
            return None
        moves += [node] if node.target in _MOVES.difference(COPIES) else []
        node = node.args[0]
    # What takes one of an op's several results is no op itself.
    args = Call(node, set()).args if isinstance(node.target, OpOverload) else {}
    if str(node.target) == _CHANNELS:
        stored, scales, zeros = evaluate(args["input"]), evaluate(args["scales"]), args["zero_points"]
        scales = scales.reshape([-1 if axis == args["axis"] % stored.dim() else 1 for axis in range(stored.dim())])
    elif str(node.target) in DEQUANTIZE:
        stored, scale, zeros = evaluate(args["input"]), args["scale"], args["zero_point"]
        scales = evaluate(scale).reshape(()) if isinstance(scale, Node) else torch.tensor(scale)
    elif node.meta["val"].dtype == torch.int8:
        stored, scales, zeros = evaluate(node), torch.ones(()), 0
    else:
        return None
    if isinstance(zeros, Node):
        zeros = int(evaluate(zeros).count_nonzero())
    weight = scaled_bytes(stored, scales)
    if zeros or weight is None:
        return None
    tensors = [weight.stored, weight.scales]
    for move in reversed(moves):
        # Scales may need a copy where bytes do not; they then differ along several axes.
        op = aten.reshape.default if move.target in _VIEWS else move.target
        tensors = [op(tensor, *move.args[1:], **move.kwargs) for tensor in tensors]
    weight = QuantizedWeight(*tensors)
    return weight if len(weight.axes) <= 1 else None


def _makes_reals(node: Node) -> bool:
    """Whether an op makes reals of bytes, of the same numbers."""
    if node.target is not aten._to_copy.default or node.meta["val"].dtype not in REALS:
        return False
    source = node.args[0]
    return isinstance(source, Node) and source.meta["val"].dtype == torch.int8


@dataclass(frozen=True)
class Groups:
    """Constants that reals [K, C] are made of: each row is in groups, of a scale and a zero point each."""

    stored: Node  # [K, groups, C of a group]
    zeros: Node
    scales: Node

    def weights(self, evaluate: Callable[[Node], Any]) -> tuple[dict[str, torch.Tensor], int] | None:
        """As the core takes them, and the bits of a value: 4 where all fit; None if it does not take them."""
        stored, zeros, scales = (evaluate(node).detach() for node in (self.stored, self.zeros, self.scales))
        size = stored.shape[2]
        if not 16 <= size <= 4096 or size & (size - 1) or not scales.isfinite().all():
            return None
        scales = scales.to(torch.float32).reshape(stored.shape[:2])
        zeros = zeros.reshape(stored.shape[:2])
        pack, bits = (_nibbles, 4) if _fit_nibbles(stored) and _fit_nibbles(zeros) else (_unsigned, 8)
        zero_points = {"zero_points": pack(zeros)} if zeros.any() else {}
        return {"weight": pack(stored), "scales": scales, **zero_points}, bits


def _fit_nibbles(values: torch.Tensor) -> bool:
    least, most = values.aminmax() if values.numel() else (values.new_zeros(()),) * 2
    return int(least) >= -8 and int(most) < 8


def _unsigned(values: torch.Tensor) -> torch.Tensor:
    return values.contiguous().view(torch.uint8) ^ 128


def _nibbles(values: torch.Tensor) -> torch.Tensor:
    """Two of the last axis to a byte, the first in its lower half."""
    values = torch.nn.functional.pad(values + 8, (0, values.shape[-1] % 2)).view(torch.uint8)
    return values[..., ::2] | values[..., 1::2] << 4


def find_groups(node: Node, turned: bool) -> Groups | None:
    """What a constant [K, C], or its transpose, has been made of, as torchao does."""
    if turned:
        if node.target is not aten.t.default:
            return None
        node = node.args[0]
    if node.target not in _VIEWS or node.args[0].target is not aten.mul.Tensor:
        return None
    less, scales = node.args[0].args
    if not isinstance(scales, Node) or less.target is not aten.sub.Tensor or less.kwargs:
        return None
    if any(getattr(part, "target", None) is not aten._to_copy.default for part in less.args):
        return None
    stored, zeros = (part.args[0] for part in less.args)
    shapes = [tuple(part.meta["val"].shape) for part in (stored, zeros, scales)]
    bytes_ = all(part.meta["val"].dtype == torch.int8 for part in (stored, zeros))
    k, count, *size = shapes[0] if len(shapes[0]) == 3 else (0, 0)
    fits = shapes[1:] == [(k, count, 1)] * 2 and node.meta["val"].shape == (k, count * (*size, 0)[0])
    return Groups(stored, zeros, scales) if bytes_ and fits else None
