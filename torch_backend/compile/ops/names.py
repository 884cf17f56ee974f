"""What reports call an op."""

from __future__ import annotations

import re

from torch._ops import HigherOrderOperator, OpOverload
from torch.fx import Node


def layer_name(node: Node) -> str:
    """The host's name for an op: the module that it stems from, else its own."""
    # Regions are lowered for one size after the other.
    name: str | None = node.meta.get("softneuro_name")
    if name is None:
        name = node.meta["softneuro_name"] = _find_name(node)
    return name


def op_name(node: Node) -> str:
    """The host's name for what an op does; Python's for a function that is no op of torch's."""
    target = node.target
    if callable(target) and not isinstance(target, OpOverload | HigherOrderOperator):
        return f"{getattr(target, '__module__', '')}.{getattr(target, '__name__', target)}".removeprefix("_")
    return str(target)


def _find_name(node: Node) -> str:
    stack = node.meta.get("nn_module_stack")
    if stack:
        path = re.sub(r"^[LG]\['\w+'\]\.?", "", list(stack.values())[-1][0])
        path = re.sub(r"\[['\"]?(\w+)['\"]?\]", r".\1", path).replace("._modules", "").replace("_modules.", "")
        if path:
            return printable(path)
    return node.name


def printable(text: str) -> str:
    """The text in one line, escaped where it has what ends lines, what moves the cursor, or half a character."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
