"""Ops that write to an input of the graph where it is: it is their result, too."""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import Graph, Node

aten = torch.ops.aten
#: By op that gives a changed copy of its first argument: the one that changes it.
IN_PLACE: dict[Any, Any] = {
    aten.index_copy.default: aten.index_copy_.default,
    aten.index_put.default: aten.index_put_.default,
}
_UPDATES = frozenset(IN_PLACE.values())


def updates(node: Node) -> bool:
    """Whether an op writes to its first argument.

    Tracing leaves no such op but where nothing else reads what was there before. So such ops may run again: they write
    the same values to the same places.
    """
    return node.op == "call_function" and node.target in _UPDATES


def updated_inputs(graph: Graph) -> list[int | None]:
    """By output of a region's graph: the place of the input that it is, among those that are tensors."""
    tensors = [n for n in graph.find_nodes(op="placeholder") if isinstance(n.meta.get("val"), torch.Tensor)]
    places = {node: place for place, node in enumerate(tensors)}
    return [places[node.args[0]] if updates(node) else None for node in graph.output_node().args[0]]
