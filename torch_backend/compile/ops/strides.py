"""Strides as torch's kernels give them, where its fake ones say otherwise: outputs are to lie as in eager mode."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch._guards import detect_fake_mode
from torch._ops import OpOverload
from torch._prims_common import suggest_memory_format
from torch.fx import Graph, Node
from torch.fx.experimental.symbolic_shapes import has_free_unbacked_symbols
from torch.fx.node import map_arg

from softneuro.torch_backend.compile.ops.orders import axis_order, hints

aten = torch.ops.aten
_Rule = Callable[[Sequence[Any], torch.Tensor], torch.Tensor]


def _by_format(arguments: Sequence[Any], result: torch.Tensor) -> torch.Tensor:
    """Channels last where they are in the first argument."""
    return torch.empty_like(result, memory_format=suggest_memory_format(arguments[0]))


def _row_major(arguments: Sequence[Any], result: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(result, memory_format=torch.contiguous_format)


def _roll(arguments: Sequence[Any], result: torch.Tensor) -> torch.Tensor:
    dims = arguments[2:]
    return (_by_format if dims and dims[0] else _row_major)(arguments, result)


# Where these are views depends on strides.
FREE_OF_STRIDES = {aten.view.default: aten.reshape.default, aten._unsafe_view.default: aten.reshape.default}

# THE table of the ops whose fake kernels err, seen with torch 2.13 over some 200 ops.
_TRUE: dict[Any, _Rule] = {
    aten.roll.default: _roll,
    aten.channel_shuffle.default: _by_format,
    aten.native_channel_shuffle.default: _by_format,
    aten.max_unpool2d.default: _by_format,
    aten.log_sigmoid_forward.default: _row_major,
    aten._transformer_encoder_layer_fwd.default: _row_major,
}


def true_value(target: Any, arguments: Any, value: Any) -> Any:
    """What an op gives for these tensors without memory, `value` by its fake kernel, with true strides."""
    rule = _TRUE.get(target)
    if rule is None:
        return value
    several = isinstance(value, tuple | list)
    results = [rule(arguments, result) for result in (value if several else [value])]
    return results if several else results[0]


def mend_strides(graph: Graph) -> None:
    """Gives such ops true strides, and all that follows from them."""
    mended: set[Node] = set()
    for node in graph.nodes:
        known = node.meta.get("val")
        follows = not mended.isdisjoint(node.all_input_nodes)
        if follows and node.target is operator.getitem:
            node.meta["val"] = _value(node.args[0])[node.args[1]]
            mended.add(node)
        if not isinstance(node.target, OpOverload) or known is None:
            continue
        if not follows and node.target not in _TRUE:
            continue
        mode = detect_fake_mode(_tensors(known))
        if mode is None or any(has_free_unbacked_symbols(value) for value in _tensors(known)):
            continue
        with mode, torch.no_grad():
            value = _again(node) if follows else known
            value = true_value(node.target, map_arg(node.args, _value), value)
        if any(_order(a) != _order(b) for a, b in zip(_tensors(value), _tensors(known), strict=True)):
            node.meta["val"] = value
            mended.add(node)


def _again(node: Node) -> Any:
    """Its value for what its arguments now are; a view of what has become no view of that is a copy."""
    args, kwargs = map_arg((node.args, node.kwargs), _value)
    try:
        return node.target(*args, **kwargs)
    except (RuntimeError, ValueError):
        if node.target not in FREE_OF_STRIDES:
            raise
        node.target = FREE_OF_STRIDES[node.target]
        return node.target(*args, **kwargs)


def _value(node: Node) -> Any:
    return node.meta["val"]


def _tensors(value: Any) -> list[torch.Tensor]:
    return [v for v in (value if isinstance(value, tuple | list) else [value]) if isinstance(v, torch.Tensor)]


def _order(value: torch.Tensor) -> tuple[int, ...]:
    return axis_order(hints(value.stride()), hints(value.shape))
