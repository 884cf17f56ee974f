"""Inputs that a graph changes in a few places, as caches of keys and values are: written to where they are.

AOT Autograd makes such a graph functional: it gives a whole new tensor, which is then copied over the input. That costs
as much as the input is large.
"""

from __future__ import annotations

from collections.abc import Sequence, Set

from torch.fx import Graph, GraphModule, Node

from softneuro.torch_backend.compile.ops.updates import IN_PLACE, updates

_FUNCTIONAL = {in_place: functional for functional, in_place in IN_PLACE.items()}


def write_in_place(module: GraphModule, changed: Sequence[int]) -> int:
    """Has ops write to the inputs whose new values they are, and returns how many do.

    `changed`: the places of the inputs that the graph changes. Its first outputs are their new values, in this order.
    What copies these over the inputs finds the very same tensor then, and does nothing.

    An input that anything else reads stays as it is: that might want what was there before.
    """
    placeholders = module.graph.find_nodes(op="placeholder")
    outputs = module.graph.output_node().args[0]
    written = 0
    for place, value in zip(changed, outputs, strict=False):
        source = placeholders[place]
        if not isinstance(value, Node) or value.target not in IN_PLACE or value.args[0] is not source:
            continue
        if set(source.users) != {value} or list(outputs).count(value) != 1:
            continue
        value.target = IN_PLACE[value.target]
        written += 1
    if written:
        module.recompile()
    return written


def keep_inside(graph: Graph, regions: Sequence[Set[Node]]) -> bool:
    """Has ops give changed copies again but where one region has the op and all that reads its result.

    For a host that wants a functional graph: it sees no more than a region that changes its arguments. True if any op
    was changed.
    """
    changed = False
    for node in graph.nodes:
        readers = {user for user in node.users if user.op != "output"}
        if updates(node) and not any(node in nodes and readers <= nodes for nodes in regions):
            node.target = _FUNCTIONAL[node.target]
            changed = True
    return changed
