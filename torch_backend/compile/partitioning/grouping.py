"""Which ops of a graph make up regions.

A supported node's depth is the largest number of host ops "gaps" on any path that leads to it: it grows by one whenever
a path goes from the host back into a region. Nodes of one depth form a convex set, its connected parts are the regions,
and no two regions can wait for each other. One pass over the graph, whatever its size.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Set

import torch
from torch.fx import Graph, Node

from softneuro.torch_backend.compile.converters import find_converter
from softneuro.torch_backend.compile.ops.purity import effects


def is_computing(node: Node) -> bool:
    """Whether an op that has a converter does arithmetic, rather than move elements."""
    return (found := find_converter(node.target)) is not None and not found.moves_only


def count_ops(nodes: Iterable[Node], steps: Set[Node] = frozenset()) -> int:
    """How many ops that compute they stand for, steps left out."""
    found = (find_converter(node.target) for node in nodes if node not in steps)
    return sum(converter.ops for converter in found if converter is not None)


def find_steps(graph: Graph, supported: Set[Node], possible: Set[Node], min_region_size: int) -> set[Node]:
    """The ops of the host that are to be steps of regions.

    THE rule: an op is a step where it lies on a way from one region to another, each of min_region_size ops without it,
    and whatever else lies on that way is in a region or a step, too.
    """
    worth: set[Node] = set()
    for nodes in assign_regions(graph, supported):
        computing = [n for n in nodes if is_computing(n)]
        worth.update(computing if count_ops(computing) >= min_region_size else ())
    steps = set(possible)
    while True:
        kept: set[Node] = set()
        for nodes in assign_regions(graph, supported | steps):
            after = _reached(nodes, worth, lambda n: n.all_input_nodes)
            before = _reached(nodes[::-1], worth, lambda n: n.users)
            kept |= steps & after & before
        kept = {n for n in steps if (n.args[0] if n.target is operator.getitem else n) in kept}  # all results of an op
        if kept == steps:
            return steps
        steps = kept


def moves_between(supported: Set[Node], steps: set[Node], possible: Callable[[Node], bool]) -> set[Node]:
    """Moves of elements that steps alone feed and read: as parts of these they need no memory of the net's."""
    moves = {n for n in supported if n.target is not operator.getitem and not is_computing(n) and possible(n)}
    while True:
        inside = steps | moves
        kept = {n for n in moves if inside.issuperset(n.users) and inside.issuperset(_tensors_of(n))}
        if kept == moves:
            return moves
        moves = kept


def _tensors_of(node: Node) -> list[Node]:
    return [n for n in node.all_input_nodes if isinstance(n.meta.get("val"), torch.Tensor)]


def _reached(nodes: list[Node], sources: Set[Node], neighbours: Callable[[Node], Iterable[Node]]) -> set[Node]:
    """Those of the nodes that a way leads to from a source, its steps from a node's neighbours to the node."""
    inside, reached = set(nodes), set[Node]()
    for node in nodes:
        if any(n in inside and (n in sources or n in reached) for n in neighbours(node)):
            reached.add(node)
    return reached


def assign_regions(graph: Graph, supported: Set[Node]) -> list[list[Node]]:
    """Convex sets of supported nodes, each in graph order."""
    depth: dict[Node, int] = {}
    parent: dict[Node, Node] = {}
    before = effects(graph)  # as if one read the other

    def root(node: Node) -> Node:
        while parent[node] is not node:
            parent[node] = parent[parent[node]]
            node = parent[node]
        return node

    for node in graph.nodes:
        inside = node in supported
        sources = [*node.all_input_nodes, *([before[node]] if node in before else [])]
        depth[node] = max(
            (depth[n] + (1 if inside and n not in supported and depth[n] >= 0 else 0) for n in sources),
            default=0 if inside else -1,
        )
        if inside:
            depth[node] = max(depth[node], 0)
            parent[node] = node
            for source in node.all_input_nodes:
                if source in supported and depth[source] == depth[node]:
                    parent[root(source)] = root(node)
    groups: dict[Node, list[Node]] = {}
    for node in graph.nodes:
        if node in supported:
            groups.setdefault(root(node), []).append(node)
    return list(groups.values())
