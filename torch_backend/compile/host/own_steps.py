"""Ops of the host that a converter makes one step of, where one op of the graph stands for several."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch.fx import Graph, Node

from softneuro.torch_backend.compile.ops.names import layer_name

if TYPE_CHECKING:
    from softneuro.torch_backend.compile.conversion.lowering import Lowering


def like(shape: list[int], dtype: torch.dtype) -> torch.Tensor:
    """A row-major tensor without memory."""
    return torch.empty(shape, dtype=dtype, device="meta")


class OwnStep:
    """A step in the making."""

    def __init__(self, low: Lowering, origin: Node) -> None:
        """`origin`: the op of the graph, whose name the step gets."""
        self._low, self._origin = low, origin
        self._graph = Graph()
        self._values: dict[Node, Any] = {}
        self._blobs: dict[Node, int] = {}
        self._ops: list[Node] = []

    def read(self, blob: int, value: torch.Tensor) -> Node:
        """A blob, as the tensor that the host has in its place."""
        node = self._graph.placeholder(f"x{len(self._blobs)}")
        self._values[node], self._blobs[node] = value, blob
        return node

    def call(self, op: Any, *arguments: Any, value: Any = None, **named: Any) -> Node:
        """An op. `value`: the tensor without memory that it gives, if that leaves the step."""
        node = self._graph.call_function(op, arguments, named)
        node.meta = {"softneuro_name": layer_name(self._origin)}
        self._values[node] = value
        self._ops.append(node)
        return node

    def give(self, result: Node) -> int:
        """Adds the step, and gives the blob of its result."""
        self._graph.output(result)
        return self._low.add_step(self._ops, self._values, self._blobs.__getitem__)[result]
