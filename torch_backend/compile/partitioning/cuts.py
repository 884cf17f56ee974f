"""Which ops of the host stand between two regions."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from torch.fx import Graph, Node

from softneuro.torch_backend.compile.ops.names import layer_name, op_name


@dataclass(frozen=True)
class Cut:
    """Two regions, by number, that would be one without these ops."""

    before: int
    after: int
    ops: list[tuple[str, str]]  # op and name


def find_cuts(graph: Graph, regions: Sequence[Sequence[Node]], declined: Mapping[Node, str]) -> list[Cut]:
    """Every two regions of which one feeds the other, through ops that no region takes or beside them.

    Beside: the second has to wait for such ops, which may read what other regions give.
    """
    place = {node: number for number, nodes in enumerate(regions) for node in nodes}
    above: dict[Node, int] = {}  # the regions that a node reads through the host's ops alone, as a set of bits
    below: dict[Node, int] = {}
    for node in graph.nodes:
        above[node] = _union((_bit(place, n) or above[n]) for n in node.all_input_nodes)
    for node in reversed(graph.nodes):
        below[node] = _union((_bit(place, n) or below[n]) for n in node.users)
    between: dict[tuple[int, int], list[Node]] = {}
    waited_for: dict[int, list[Node]] = {}
    for node in declined:
        if node in place or node.target is operator.getitem:
            continue
        for after in _numbers(below[node]):
            waited_for.setdefault(after, []).append(node)
            for before in _numbers(above[node]):
                between.setdefault((before, after), []).append(node)
    for node, after in place.items():
        for source in node.all_input_nodes:
            if place.get(source, after) != after:
                between.setdefault((place[source], after), waited_for.get(after, []))
    return [Cut(*pair, [(op_name(n), layer_name(n)) for n in ops]) for pair, ops in sorted(between.items()) if ops]


def _bit(place: Mapping[Node, int], node: Node) -> int:
    return 1 << place[node] if node in place else 0


def _union(sets: Iterator[int]) -> int:
    result = 0
    for one in sets:
        result |= one
    return result


def _numbers(bits: int) -> Iterator[int]:
    while bits:
        lowest = bits & -bits
        yield lowest.bit_length() - 1
        bits ^= lowest
