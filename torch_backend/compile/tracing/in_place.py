"""Inputs that a graph changes in a few places, as caches of keys and values are: written to where they are.

AOT Autograd makes such a graph functional: it gives a whole new tensor, which is then copied over the input. That costs
as much as the input is large.
"""

from __future__ import annotations

from collections.abc import Sequence

from torch.fx import GraphModule, Node

from softneuro.torch_backend.compile.ops.updates import IN_PLACE


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
