"""Signed bytes that flow in a quantized graph, made unsigned: 128 more of their values and of their zero points."""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple

from softneuro.providers.quantized_graph import INT8, QuantizedGraph, byte_tensors


class _Place(NamedTuple):
    """Where a node has a zero point, and what it is."""

    node: Any
    at: int
    zero: int


def make_unsigned(graph: QuantizedGraph) -> None:
    """Makes tensors between nodes unsigned, where all nodes around them are known to take either kind."""
    signed = {name for node in graph.nodes for name, _ in byte_tensors(node) if graph.kind(name) == INT8}
    blocked = {name for name in signed if graph.is_fixed(name)}
    places: list[tuple[str, _Place]] = []
    for node in graph.nodes:
        known = [(name, zero) for name, zero in byte_tensors(node) if name in signed]
        touched = Counter(name for name in (*node.input, *node.output) if name in signed)
        blocked |= (touched - Counter(name for name, _ in known)).keys()
        for name, zero in known:
            if zero is None:
                continue
            place = _find_place(graph, node, zero)
            if place is None:
                blocked.add(name)
            else:
                places.append((name, place))
    _spread(graph, signed, blocked)
    for name, place in places:
        if name not in blocked:
            _move(graph, place)
    for name in signed - blocked:
        graph.make_unsigned(name)


def _spread(graph: QuantizedGraph, signed: set[str], blocked: set[str]) -> None:
    """Ops other than those between bytes and reals want all of their tensors to be of one kind."""
    groups = [{name for name, _ in byte_tensors(node)} & signed for node in graph.nodes]
    while more := [group for group in groups if group & blocked and not group <= blocked]:
        blocked.update(*more)


def _find_place(graph: QuantizedGraph, node: Any, at: int) -> _Place | None:
    """None unless it is a constant that is known to be one number."""
    is_border = node.op_type in {"QuantizeLinear", "DequantizeLinear"}
    if is_border and (scale := graph.array(node.input[1])) is not None and scale.size != 1:
        return None
    if is_border and (len(node.input) <= at or not node.input[at]):
        return _Place(node, at, 0) if graph.array(node.input[1]) is not None else None
    zero = graph.array(node.input[at]) if len(node.input) > at else None
    return _Place(node, at, int(zero.item())) if zero is not None and zero.size == 1 else None


def _move(graph: QuantizedGraph, place: _Place) -> None:
    import numpy as np

    node = place.node
    for i, attribute in reversed(list(enumerate(node.attribute))):
        if attribute.name == "output_dtype" and attribute.i == INT8:
            del node.attribute[i]
    while len(node.input) <= place.at:
        node.input.append("")
    node.input[place.at] = graph.constant(np.uint8(place.zero + 128), "zero point")
