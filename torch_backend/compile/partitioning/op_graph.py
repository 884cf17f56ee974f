"""A graph of torch's as the core's partition sees it: what layers can do of it, and what may be a step."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field

import torch
from torch.fx import Graph, Node

from softneuro._C import OpGraph
from softneuro.torch_backend.compile.converters import decline_reason, find_converter
from softneuro.torch_backend.compile.converters.registry import asked
from softneuro.torch_backend.compile.host.host_steps import step_reason
from softneuro.torch_backend.compile.ops.names import op_name
from softneuro.torch_backend.compile.ops.purity import effects, has_effect
from softneuro.torch_backend.compile.ops.reals import changes_type
from softneuro.torch_backend.compile.partitioning.inside import read_inside

_NUMBER = "it computes a number, not a tensor"


@dataclass
class Told:
    """The core's graph, and what its numbers stand for."""

    graph: OpGraph = field(default_factory=OpGraph)
    nodes: list[Node] = field(default_factory=list)  # by number: an op; what takes one of its results goes with it
    items: dict[Node, list[Node]] = field(default_factory=dict)  # by op: what takes one of its results
    numbers: set[Node] = field(default_factory=set)  # ops that compute no tensors

    def ops(self, numbers: Iterable[int]) -> list[Node]:
        """The ops of these numbers that compute tensors."""
        return [self.nodes[i] for i in numbers if self.nodes[i] not in self.numbers]

    def all_nodes(self, numbers: Iterable[int]) -> list[Node]:
        """The ops of these numbers, each with what takes one of its results."""
        return [node for i in numbers for node in (self.nodes[i], *self.items.get(self.nodes[i], ()))]


def tell(graph: Graph, constants: Set[Node], declined: Mapping[Node, str], *, join: bool) -> Told:
    """All ops of the graph but constants. `declined`: ops that no region is to have, and why."""
    told = Told()
    inside = read_inside(graph, constants)
    before = effects(graph)
    numbers: dict[Node, int] = {}
    values: dict[Node, int] = {}  # of tensors
    for node in graph.nodes:
        if node.op != "call_function" or node in constants:
            if node.op != "output" and node not in constants:
                values[node] = told.graph.add_value()
            continue
        origin = _origin(node)
        if origin in numbers:
            told.items.setdefault(origin, []).append(node)
            continue
        is_number = isinstance(node.meta.get("val"), torch.SymInt | int | torch.SymBool | torch.SymFloat)
        known = inside.get(node)
        made = [node, *_items(node)]
        for one in made:
            values[one] = told.graph.add_value(
                is_output=any(user.op == "output" for user in one.users),
                stays_inside=known is not None and known.gives,
            )
        read = [values[n] for n in node.all_input_nodes if n in values and _is_tensor(n)]
        waits = {numbers[_origin(n)] for n in node.all_input_nodes if _origin(n) in numbers and not _is_tensor(n)}
        waits |= {numbers[before[node]]} if before.get(node) in numbers else set()
        reason = declined.get(node)
        if reason is None and is_number:
            reason = _NUMBER
        if reason is None:
            reason = known.reason if known is not None else asked(decline_reason, node, constants)
        found = find_converter(node.target)
        moves = found is None or found.moves_only
        numbers[node] = told.graph.add_node(
            op_name(node),
            read,
            [values[one] for one in made],
            after=sorted(waits),
            refusal=reason or "",
            may_be_step=join and not is_number and asked(step_reason, node, constants) is None,
            ops=found.ops if found is not None else 0,
            at_rim="stays" if not moves else "converts" if known is not None or changes_type(node) else "leaves",
            takes_inside=known is not None and known.takes,
            has_effect=has_effect(node),
        )
        told.nodes.append(node)
        told.numbers.update([node] if is_number else [])
    return told


def _origin(node: Node) -> Node:
    """The op that a result is taken from."""
    while node.target is operator.getitem and isinstance(node.args[0], Node):
        node = node.args[0]
    return node


def _items(node: Node) -> list[Node]:
    """What takes one of an op's results, directly or out of another."""
    found = [user for user in node.users if user.target is operator.getitem]
    return [item for one in found for item in (one, *_items(one))]


def _is_tensor(node: Node) -> bool:
    return isinstance(node.meta.get("val"), torch.Tensor)
