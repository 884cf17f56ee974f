"""Element types that regions take, and what their ops would give in float32 throughout."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch.fx import GraphModule, Interpreter, Node
from torch.fx.node import map_aggregate

HALVES = (torch.float16, torch.bfloat16)
REALS = (torch.float32, *HALVES)
# Types whose numbers a region may compute as reals, where they stay inside it.
INTEGERS = (torch.uint8, torch.int8, torch.int32)
# Types whose numbers a region computes with as the host does.
WHOLE = (torch.int64, torch.int32, torch.bool)
# Regions read images of bytes from the host as reals.
BYTES = (torch.uint8,)


def is_conversion(node: Node) -> bool:
    """Whether an op does no more than to change one of these types into another."""
    if node.target is not torch.ops.aten._to_copy.default or node.kwargs.get("dtype") not in REALS:
        return False
    source = node.args[0]
    return isinstance(source, Node) and source.meta["val"].dtype in REALS


def changes_type(node: Node) -> bool:
    """Whether an op is such a conversion to another type than its source has."""
    return is_conversion(node) and node.meta["val"].dtype != node.args[0].meta["val"].dtype


def in_float32(target: Any, args: Any, kwargs: Any) -> Any:
    """Calls an op as if there were no halves: neither among its tensors nor among the types that it is told."""

    def widened(value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return value.float() if value.dtype in HALVES else value
        return torch.float32 if isinstance(value, torch.dtype) and value in HALVES else value

    arguments, named = map_aggregate((tuple(args), dict(kwargs)), widened)
    return target(*arguments, **named)


def numbers(tensor: torch.Tensor) -> np.ndarray[Any, Any]:
    """A tensor's elements for NumPy, which lacks bfloat16."""
    tensor = tensor.detach().cpu()
    return (tensor.float() if tensor.dtype == torch.bfloat16 else tensor).numpy()


def has_halves(module: GraphModule) -> bool:
    """Whether any op or input is of two-byte reals."""
    values = (node.meta.get("val") for node in module.graph.nodes)
    return any(isinstance(value, torch.Tensor) and value.dtype in HALVES for value in values)


class InFloat32(Interpreter):
    """A graph's ops without any rounding to halves. Weights are widened op by op, so that no copy of all is made."""

    def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
        """One op."""
        return in_float32(target, args, kwargs)

    def outputs(self, arguments: Sequence[Any]) -> list[torch.Tensor]:
        """The graph's results in float32."""
        with torch.no_grad():
            return [result.float() for result in self.run(*arguments)]
