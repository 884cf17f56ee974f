"""Which tensors of a graph hold whole numbers, and in what range.

A region computes with reals. One may stand for a host's integer only where this says that it is that integer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass
from typing import Any

import torch
from torch._ops import OpOverload
from torch.fx import Graph, Node

from softneuro.torch_backend.compile.converters.quantize import QUANTIZE
from softneuro.torch_backend.compile.converters.registry import Call, aten
from softneuro.torch_backend.compile.converters.shape import MOVES
from softneuro.torch_backend.compile.ops.reals import INTEGERS, REALS


@dataclass(frozen=True)
class Whole:
    """Whole numbers in a range, which may be open."""

    least: float = -math.inf
    most: float = math.inf

    def within(self, dtype: torch.dtype) -> bool:
        """Whether a type of integers has them all."""
        limits = torch.iinfo(dtype)
        return limits.min <= self.least and self.most <= limits.max


# Up to here float32 has all whole numbers. Only sums of products may be larger: scales make reals of them.
_EXACT = 2**24


def find_whole(graph: Graph, constants: Set[Node]) -> dict[Node, Whole]:
    """The tensors whose values are known to be whole, as reals compute them: constants, too."""
    found: dict[Node, Whole] = {}
    sums: set[Node] = set()  # of products, less constants
    for node in graph.nodes:
        value = node.meta.get("val")
        if not isinstance(value, torch.Tensor):
            continue
        rule = _rule(node.target)
        fact = rule(_Ranges(Call(node, set()), found)) if rule is not None else None
        if value.dtype in INTEGERS:
            limits = torch.iinfo(value.dtype)
            if fact is None and (node.op != "call_function" or rule is None):
                fact = Whole(limits.min, limits.max)  # whatever made it made it whole
            elif fact is not None and not fact.within(value.dtype):
                fact = None  # the host's would begin anew at the other end
            elif fact is not None and node not in constants:
                if _is_sum(node, sums, constants):
                    sums.add(node)
                elif max(-fact.least, fact.most) > _EXACT:
                    fact = None
        if fact is not None:
            found[node] = fact
    return found


def _is_sum(node: Node, sums: Set[Node], constants: Set[Node]) -> bool:
    if node.target is aten._int_mm.default:
        return True
    moves = node.target in MOVES or node.target is aten._to_copy.default
    shifts = node.target is aten.sub.Tensor and node.args[0] in sums
    return (moves or shifts) and all(n in sums or n in constants for n in node.all_input_nodes)


class _Ranges:
    """An op's arguments, and what is known of them."""

    def __init__(self, call: Call, found: Mapping[Node, Whole]) -> None:
        self.call, self._found = call, found

    def __getitem__(self, name: str) -> Whole | None:
        value = self.call.args[name]
        if isinstance(value, Node):
            return self._found.get(value)
        return Whole(value, value) if isinstance(value, int | float) and float(value).is_integer() else None


_Rule = Callable[[_Ranges], Whole | None]


def _corners(function: Callable[[float, float], float], left: str, right: str) -> _Rule:
    """For a function whose extremes are at those of its operands."""

    def rule(ranges: _Ranges) -> Whole | None:
        a, b = ranges[left], ranges[right]
        if a is None or b is None or ranges.call.args.get("alpha", 1) != 1:
            return None
        values = [function(x, y) for x in (a.least, a.most) for y in (b.least, b.most)]
        return Whole() if any(map(math.isnan, values)) else Whole(min(values), max(values))

    return rule


def _same(name: str = "self") -> _Rule:
    return lambda ranges: ranges[name]


def _rounded(ranges: _Ranges) -> Whole | None:
    return ranges["self"] or Whole()


def _clamped(ranges: _Ranges) -> Whole | None:
    known, args = ranges["self"], ranges.call.args
    bounds = [Whole(end, end) if args.get(name) is None else ranges[name] for name, end in _ENDS.items()]
    if known is None or None in bounds or any(isinstance(args.get(name), Node) for name in _ENDS):
        return None
    low, high = (bound.least for bound in bounds if bound is not None)
    least, most = (min(max(end, low), high) for end in (known.least, known.most))
    return Whole(least, most)


_ENDS = {"min": -math.inf, "max": math.inf}


def _filled(number: int | None) -> _Rule:
    def rule(ranges: _Ranges) -> Whole | None:
        return ranges["fill_value"] if number is None else Whole(number, number)

    return rule


def _product(ranges: _Ranges) -> Whole | None:
    a, b = ranges["self"], ranges["mat2"]
    depth = ranges.call.shape("mat2")[0]
    if a is None or b is None or not isinstance(depth, int):
        return None
    most = depth * max(-a.least, a.most) * max(-b.least, b.most)
    return Whole(-most, most)


def _summed(ranges: _Ranges) -> Whole | None:
    known, sizes = ranges["self"], (*ranges.call.shape("self"), *ranges.call.output_shape)
    if known is None or not all(isinstance(size, int) for size in sizes):
        return None
    count = ranges.call.value(ranges.call.args["self"]).numel() / max(1, ranges.call.output.numel())
    return Whole(count * known.least, count * known.most)


def _quantized(ranges: _Ranges) -> Whole | None:
    least, most = ranges["quant_min"], ranges["quant_max"]
    return Whole(least.least, most.most) if least is not None and most is not None else None


_RULES: dict[Any, _Rule] = {
    aten.round.default: _rounded,
    aten.add.Tensor: _corners(lambda a, b: a + b, "self", "other"),
    aten.sub.Tensor: _corners(lambda a, b: a - b, "self", "other"),
    aten.rsub.Scalar: _corners(lambda a, b: b - a, "self", "other"),
    aten.mul.Tensor: _corners(lambda a, b: a * b, "self", "other"),
    aten.maximum.default: _corners(max, "self", "other"),
    aten.minimum.default: _corners(min, "self", "other"),
    aten._int_mm.default: _product,
    aten.sum.dim_IntList: _summed,
    **dict.fromkeys((aten.clamp.default, aten.clamp_min.default, aten.clamp_max.default), _clamped),
    **dict.fromkeys((*MOVES, aten._to_copy.default, aten.amax.default, aten.amin.default), _same()),
    **dict.fromkeys((aten.full_like.default, aten.full.default), _filled(None)),
    aten.zeros_like.default: _filled(0),
}


def _rule(target: Any) -> _Rule | None:
    return _quantized if str(target) in QUANTIZE else _RULES.get(target) if isinstance(target, OpOverload) else None


def computes_whole(node: Node, inside: Set[Node], constants: Set[Node]) -> bool:
    """Whether layers compute an op's integers as reals, if these are known: of reals, or of integers so computed."""
    if _RULES.get(node.target) is None:
        return False
    read = [n for n in node.all_input_nodes if n not in constants and isinstance(n.meta.get("val"), torch.Tensor)]
    return all(n in inside or n.meta["val"].dtype in REALS for n in read)
