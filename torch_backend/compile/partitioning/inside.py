"""Values that are no tensors of the host's inside a region: what quantizes, and integers, are reals there.

A region has what makes such a value with all that reads it, or nothing of it.
"""

from __future__ import annotations

import operator
from collections.abc import Set
from dataclasses import dataclass

import torch
from torch.fx import Graph, Node

from softneuro.torch_backend.compile.converters import decline_reason
from softneuro.torch_backend.compile.converters.quantize import CHOOSE, DEQUANTIZE, QUANTIZE, check_grid
from softneuro.torch_backend.compile.converters.registry import Call, asked, aten, tensor_reason
from softneuro.torch_backend.compile.converters.shape import MOVES
from softneuro.torch_backend.compile.ops.names import layer_name
from softneuro.torch_backend.compile.ops.reals import INTEGERS
from softneuro.torch_backend.compile.partitioning.whole_numbers import computes_whole, find_whole

BYTES = (torch.uint8, torch.int8)


def quantizes(node: Node) -> bool:
    """Whether an op is a Q of a whole tensor."""
    return str(node.target) in QUANTIZE


def dequantizes(node: Node) -> bool:
    """Whether an op is a DQ of a whole tensor."""
    return str(node.target) in DEQUANTIZE


@dataclass(frozen=True)
class InsideOp:
    """An op that makes such values, or reads them."""

    reason: str | None  # why the host keeps it, whatever reads its result
    takes: bool
    gives: bool


def read_inside(graph: Graph, constants: Set[Node]) -> dict[Node, InsideOp]:
    """The ops that make or read what is a real only inside a region: reals on the grid of a Q, and whole numbers."""
    return _Reader(constants, set(find_whole(graph, constants))).read(graph)


def rounds_to_steps(graph: Graph, constants: Set[Node]) -> set[Node]:
    """The ops that make whole steps of reals, by a scale: those that quantize, and roundings that integers come of."""
    wanted: set[Node] = set()  # integers that reals have become, and what they come of
    found: set[Node] = set()
    for node in reversed(graph.nodes):
        if node.op != "call_function" or node in constants:
            continue
        value = node.meta.get("val")
        is_integer = isinstance(value, torch.Tensor) and value.dtype in INTEGERS
        if (node.target is aten._to_copy.default and is_integer) or not wanted.isdisjoint(node.users):
            wanted.add(node)
        if quantizes(node) or (node in wanted and node.target is aten.round.default):
            found.add(node)
    return found


class _Reader:
    def __init__(self, constants: Set[Node], whole: Set[Node]) -> None:
        self._constants, self._whole = constants, whole
        self._grids: dict[Node, Node] = {}  # by what gives reals on a grid: its Q
        self._inside: set[Node] = set()  # other values

    def read(self, graph: Graph) -> dict[Node, InsideOp]:
        found: dict[Node, InsideOp] = {}
        for node in graph.nodes:
            if node.op != "call_function" or node in self._constants:
                continue
            if node.target is operator.getitem:
                self._inside.update([node] if node.args[0] in self._inside else [])
            elif (known := self._look_at(node)) is not None:
                found[node] = known
        return found

    def _look_at(self, node: Node) -> InsideOp | None:
        """What is known of an op, once it is of those before it."""
        source = node.args[0] if node.args and isinstance(node.args[0], Node) else None
        grid = self._grids.get(source) if source is not None else None
        if quantizes(node) and not self._has_scale_of_run(node):
            self._grids[node] = node
            return InsideOp(_quantize_reason(Call(node, self._constants)), takes=False, gives=True)
        if dequantizes(node) and not (self._has_scale_of_run(node) and source in self._inside):
            return InsideOp(_dequantize_reason(Call(node, self._constants), grid), takes=grid is not None, gives=False)
        if grid is not None and node.target in MOVES and len(node.all_input_nodes) == 1:
            # A size that another op computes might put the move into a later region.
            self._grids[node] = grid
            return InsideOp(tensor_reason(Call(node, self._constants).output, BYTES), takes=True, gives=True)
        takes = not self._inside.isdisjoint(node.all_input_nodes)
        gives = quantizes(node) or str(node.target) == CHOOSE or self._gives_whole(node)
        if not takes and not gives:
            return None
        if gives:
            self._inside.add(node)
        reason = asked(decline_reason, node, self._constants, self._inside)
        if reason is not None:
            self._inside.discard(node)
            return InsideOp(reason, takes=False, gives=False)
        return InsideOp(None, takes, gives)

    def _has_scale_of_run(self, node: Node) -> bool:
        scale = Call(node, self._constants).args["scale"]
        return isinstance(scale, Node) and scale in self._inside

    def _gives_whole(self, node: Node) -> bool:
        value = node.meta.get("val")
        is_whole = isinstance(value, torch.Tensor) and value.dtype in INTEGERS and node in self._whole
        return is_whole and computes_whole(node, self._inside, self._constants)


def _quantize_reason(call: Call) -> str | None:
    source = tensor_reason(call.value(call.args["input"]))
    return source or tensor_reason(call.output, BYTES) or check_grid(call)


def _dequantize_reason(call: Call, quantize: Node | None) -> str | None:
    if quantize is None:
        return "its bytes come from no quantization"
    made = Call(quantize, set()).args
    if any(made[name] is not call.args[name] and made[name] != call.args[name] for name in ("scale", "zero_point")):
        return f"{layer_name(call.node)} takes its bytes for those of another"
    return tensor_reason(call.output)
