"""What follows from weights alone: its values, and how the core is given them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch.fx import Node

from softneuro.torch_backend.compile.conversion.quantized_weights import QuantizedWeight
from softneuro.torch_backend.compile.converters.registry import find_converter
from softneuro.torch_backend.compile.ops.borders import TYPES
from softneuro.torch_backend.compile.ops.reals import WHOLE, in_float32, is_conversion
from softneuro.torch_backend.compile.ops.walks import with_sources


class Evaluation:
    """The real values of nodes that follow from weights and sizes alone, not rounded to halves on the way."""

    def __init__(self, weights: Mapping[Node, tuple[int, torch.Tensor]]) -> None:
        self._weights = weights  # by placeholder: index and tensor
        self._evaluated: dict[Node, Any] = {}

    def know_sizes(self, values: Mapping[Node, Any]) -> None:
        """Takes the numbers among what nodes stand for: constants may follow from them, too."""
        self._evaluated |= {node: value for node, value in values.items() if isinstance(value, int)}

    def __call__(self, node: Node) -> Any:
        """One of them."""
        known = self._evaluated
        if node in self._weights:
            return self._weights[node][1]
        for one in with_sources([node], lambda n: () if n in known or n in self._weights else n.all_input_nodes):
            if one in self._weights:
                known[one] = self._weights[one][1]
            elif is_conversion(one):
                known[one] = known[one.args[0]]
            elif one not in known:
                args, kwargs = torch.fx.node.map_arg((one.args, one.kwargs), known.__getitem__)
                moves = (found := find_converter(one.target)) is not None and found.moves_only
                with torch.no_grad():
                    known[one] = one.target(*args, **kwargs) if moves else in_float32(one.target, args, kwargs)
        return known[node]


def memory_of(value: torch.Tensor | QuantizedWeight) -> Any:
    """A weight's elements one after the other, as the core takes them: in their own memory if they lie so."""
    if isinstance(value, QuantizedWeight):
        return value.memory()
    value = value.reshape(-1) if value.dim() == 0 else value.contiguous()
    if value.dtype == torch.uint8 or value.dtype in WHOLE:
        return value.numpy(), TYPES[value.dtype]  # and not what floats are made of
    # NumPy has no bfloat16.
    return (value.view(torch.uint16).numpy(), "bfloat16") if value.dtype == torch.bfloat16 else value.numpy()
