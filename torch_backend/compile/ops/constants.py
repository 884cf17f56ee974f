"""What of a graph is the same at every call: what follows from weights, and from shapes, alone."""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping, Set
from typing import Any

import torch
from torch.fx import Graph, Node
from torch.fx.experimental.symbolic_shapes import has_free_unbacked_symbols

from softneuro.torch_backend.compile.converters.registry import Call
from softneuro.torch_backend.compile.ops.orders import hints
from softneuro.torch_backend.compile.ops.purity import is_pure

aten = torch.ops.aten
# Ops that read no more than the shape and the type of a tensor, and what they fill a new one with.
_FILLED: dict[Any, float | None] = {
    aten.new_zeros.default: 0,
    aten.new_ones.default: 1,
    aten.new_full.default: None,  # an argument
    aten.zeros_like.default: 0,
    aten.ones_like.default: 1,
    aten.full_like.default: None,
}
_SIZE = aten.sym_size.int
_LARGEST = 1 << 20  # elements of a tensor that is kept, rather than made again at every call


def free_of_values(graph: Graph) -> None:
    """Replaces ops that read a tensor's shape, if that is known, by ones that read nothing.

    Drops what an exported program asserts of types, where tracing has found them so.
    """
    for node in list(graph.nodes):
        if node.target is aten._assert_tensor_metadata.default and _is_as_asserted(Call(node, set()).args):
            graph.erase_node(node)
        if node.target not in _FILLED:
            continue
        value, filling = node.meta["val"], _FILLED[node.target]
        if filling is None:
            filling = Call(node, set()).args["fill_value"]
        if _is_small(value) and value.is_contiguous() and not isinstance(filling, Node):
            with graph.inserting_before(node):
                made = graph.call_function(aten.full.default, (list(value.shape), filling),
                                           {"dtype": value.dtype, "device": value.device})  # fmt: skip
            made.meta = dict(node.meta)
            node.replace_all_uses_with(made)
            graph.erase_node(node)


def _is_as_asserted(args: Mapping[str, Any]) -> bool:
    value = args["a"].meta["val"]
    found = {name: getattr(value, name) for name in ("dtype", "device", "layout")}
    unknown = args["size"] is not None or args["stride"] is not None
    return not unknown and all(args[name] in (None, fact) for name, fact in found.items())


def free_of_sizes(graph: Graph) -> None:
    """Replaces sizes of what the graph computes by products of its inputs' sizes, where they are no more than that."""
    known: dict[Any, Node] = {}
    for node in list(graph.nodes):
        value = node.meta.get("val")
        given = node.op == "placeholder" or (node.target is _SIZE and node.args[0].op == "placeholder")
        if not isinstance(value, torch.SymInt):
            continue
        if given:
            known.setdefault(value.node.expr, node)
            continue
        factors = value.node.expr.as_ordered_factors()
        if node.target is _SIZE and all(factor in known or factor.is_Integer for factor in factors):
            numbers = [known.get(factor) or int(factor) for factor in factors]
            made = numbers[0]
            with graph.inserting_before(node):
                for number in numbers[1:]:
                    product = _number(made) * _number(number)
                    made = graph.call_function(operator.mul, (made, number))
                    made.meta["val"] = product
            node.replace_all_uses_with(made)
            graph.erase_node(node)


def _number(value: Node | int) -> Any:
    return value.meta["val"] if isinstance(value, Node) else value


def find_constants(graph: Graph, static: Set[Node]) -> set[Node]:
    """Nodes whose values follow from weights, which are given and included, or from nothing at all.

    Only by ops that are functions: what may have a state, or be random, runs at every call.
    """
    constants: set[Node] = set(static)
    for node in graph.nodes:
        value = node.meta.get("val")
        if node.op == "get_attr" and isinstance(value, torch.Tensor):
            constants.add(node)
        elif node.op == "call_function" and constants.issuperset(node.all_input_nodes):
            function = (node.all_input_nodes or _is_small(value)) and is_pure(node)
            constants.update([node] if function or node.target is operator.getitem else [])
    return constants


def find_sized(graph: Graph, constants: Set[Node]) -> set[Node]:
    """Nodes whose values follow from weights and from sizes: they are the same in all calls with inputs of a shape."""
    found: set[Node] = set()
    for node in graph.nodes:
        if node.op != "call_function" or node in constants or not is_pure(node):
            continue
        read = [n for n in node.all_input_nodes if n not in constants and n not in found]
        if all(_is_size(n) for n in read) and _is_kept(node.meta.get("val")):
            found.add(node)
    return found


def _is_kept(value: Any) -> bool:
    if not isinstance(value, torch.Tensor) or value.device.type != "cpu" or has_free_unbacked_symbols(value):
        return False
    return math.prod(hints(value.shape)) <= _LARGEST


def _is_size(node: Node) -> bool:
    value = node.meta.get("val")
    return isinstance(value, torch.SymInt) and not has_free_unbacked_symbols(value)


def _is_small(value: Any) -> bool:
    if not isinstance(value, torch.Tensor) or any(not isinstance(size, int) for size in value.shape):
        return False
    return value.numel() <= _LARGEST and value.device.type == "cpu"
