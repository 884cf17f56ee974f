"""Which ops are functions of their arguments, and the order of those that may not be."""

from __future__ import annotations

import torch
from torch._ops import HigherOrderOperator, OpOverload
from torch.fx import Graph, Node

from softneuro.torch_backend.compile.converters.registry import Call
from softneuro.torch_backend.compile.ops.updates import updates

_OWN = ("aten", "prims", "quantized_decomposed", "softneuro")  # torch's libraries of functions, and ours


def is_random(node: Node) -> bool:
    """Whether an op of torch's own draws numbers."""
    # Attention is random by its dropout alone.
    return torch.Tag.nondeterministic_seeded in node.target.tags and Call(node, set()).args.get("dropout_p") != 0


def is_pure(node: Node) -> bool:
    """Whether an op gives the same for the same arguments, and does nothing else. None of other libraries is known to.

    Only such an op may run once for many calls, or more often than the host runs it. What writes to an input does no
    more than to give it: nothing else reads that, and its results are in order.
    """
    op = node.target
    if updates(node):
        return True
    if not isinstance(op, OpOverload) or op.namespace not in _OWN:
        return False
    return bool(op._schema.returns) and not op._schema.is_mutable and not is_random(node)


def has_effect(node: Node) -> bool:
    """Whether an op may do more than to give its result, or draws numbers."""
    is_op = node.op == "call_function" and isinstance(node.target, OpOverload | HigherOrderOperator)
    return is_op and not is_pure(node)


def effects(graph: Graph) -> dict[Node, Node]:
    """Maps each op that may have an effect beside its result, or draw numbers, to the one before: that order stays."""
    before: dict[Node, Node] = {}
    last: Node | None = None
    for node in graph.nodes:
        if not has_effect(node):
            continue
        if last is not None:
            before[node] = last
        last = node
    return before
