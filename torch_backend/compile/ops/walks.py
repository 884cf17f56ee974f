"""Ways through graphs that may be thousands of ops deep, so without recursion."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from torch.fx import Node


def with_sources(nodes: Iterable[Node], sources: Callable[[Node], Iterable[Node]]) -> list[Node]:
    """The nodes and all that they follow from, each once, after its own sources and otherwise in the order given."""
    done: dict[Node, None] = {}
    stack = list(nodes)[::-1]
    entered: set[Node] = set()
    while stack:
        node = stack[-1]
        if node in entered or node in done:
            stack.pop()
            done.setdefault(node)
            continue
        entered.add(node)
        stack.extend(n for n in reversed(list(sources(node))) if n not in entered)
    return list(done)
