"""The order of a graph's nodes."""

from __future__ import annotations

from collections.abc import Sequence

from torch.fx import GraphModule, Node

from softneuro.torch_backend.compile.ops.purity import effects


def sort_stable(module: GraphModule, together: Sequence[Sequence[Node]] = ()) -> None:
    """Restores topological order, moving as few nodes as possible and none past another's effects; drops dead nodes.

    Each group of `together`, in its own order, is left without other nodes in between.
    """
    graph = module.graph
    order = sorted(graph.nodes, key=lambda n: n.op != "placeholder")
    placed: set[Node] = set()
    output = graph.output_node()
    groups = {node: group for group in together for node in group}
    before = effects(graph)

    def place(node: Node) -> None:
        stack = [node]
        while stack:
            top = stack[-1]
            group = groups.get(top, (top,))
            sources = [n for m in group for n in (*m.all_input_nodes, *([before[m]] if m in before else []))]
            read = (n for n in sources if groups.get(n) is not group)
            waiting = [n for n in read if n not in placed]
            if waiting and top not in placed:
                stack.extend(reversed(waiting))
                continue
            stack.pop()
            if top not in placed:
                placed.update(group)
                for member in group:
                    output.prepend(member)

    for node in order:
        if node is not output:
            place(node)
    graph.eliminate_dead_code()
    graph.lint()
    module.recompile()
