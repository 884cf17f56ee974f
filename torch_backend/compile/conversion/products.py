"""Products by a weight's bytes that hosts spell out in many ops: found whole, or left to the host as they are.

Three forms. Reals by bytes, then a scale per column (weight-only). Reals that are quantized with a scale that is known
(static), or that is computed of them (dynamic), before bytes are multiplied by bytes. And such reals made real again
before a product of reals, which is how torch's export flow has the last form.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch.fx import Node

from softneuro.torch_backend.compile.conversion.quantized_weights import Groups, QuantizedWeight, scaled_bytes
from softneuro.torch_backend.compile.converters.shape import COPIES, RESHAPES
from softneuro.torch_backend.compile.ops.reals import is_conversion

if TYPE_CHECKING:
    from softneuro.torch_backend.compile.conversion.lowering import Lowering


@dataclass(frozen=True)
class Product:
    """Ops that are one layer: `linear`, `linear_blocks` or `dynamic_linear`."""

    members: list[Node]  # the last one has the result; none but that is wanted elsewhere
    source: Node
    weight: Node  # bytes, or reals that are a DQ of bytes
    turned: bool  # the weight has a column per result
    scales: Node | None = None  # of bytes: one, or one per result
    bias: Node | None = None
    static: dict[str, Any] | None = None  # the grid of the source, or
    dynamic: dict[str, Any] | None = None  # how that is computed; neither of both where the source stays real
    groups: Groups | None = None  # that the weight, which is real, has been made of

    @property
    def root(self) -> Node:
        """The op that has the result."""
        return self.members[-1]

    def copied(self, copies: Mapping[Node, Node]) -> Product:
        """The same in another graph."""
        parts = {**vars(self), "groups": self.groups and dict(vars(self.groups))}
        copied = dict(torch.fx.node.map_arg(parts, copies.__getitem__))
        return Product(**{**copied, "groups": self.groups and Groups(**copied["groups"])})


def lower_product(low: Lowering, product: Product) -> int:
    """Adds the layer."""
    blob, bias = low.blob(source_rows(product.source)), low.weights(bias=product.bias)
    bias = {role: value.reshape(-1) for role, value in bias.items()}
    if product.groups is not None and (found := product.groups.weights(low.evaluate)) is not None:
        return low.add("linear_blocks", [blob], {**found, **bias}, bits=8, block=found["weight"].shape[2])
    weights = {"weight": _weight(low, product), **bias}
    if product.dynamic is not None:
        return low.add("dynamic_linear", [blob], weights, **product.dynamic)
    if product.static is not None:
        grid = {**product.static, "scale": float(low.evaluate(product.static["scale"])), "reciprocal": True}
        blob = low.add("quantize", [blob], post={"quantize": grid})
    return low.add("linear", [blob], weights)


def _weight(low: Lowering, product: Product) -> torch.Tensor | QuantizedWeight:
    if product.scales is None:
        weight = low.weight(product.weight)
        return weight.t() if product.turned else weight
    stored, scales = low.evaluate(product.weight), low.constant(product.scales).reshape(-1, 1)
    stored = stored.t() if product.turned else stored
    return scaled_bytes(stored, scales) or stored.to(torch.float32) * scales


def last_size(node: Node) -> list[Any]:
    """The shape of a row."""
    return list(node.meta["val"].shape[-1:]) or [1]


def keeps_rows(node: Any) -> bool:
    """Whether an op gives the same rows of elements, maybe in another type of reals or along other axes."""
    if not isinstance(node, Node) or not (node.target in (*RESHAPES, *COPIES) or is_conversion(node)):
        return False
    before, after = last_size(node.args[0]), last_size(node)
    return before == after and all(isinstance(size, int) for size in after)


def source_rows(node: Node) -> Node:
    """What these rows are the rows of, before it got other axes."""
    while keeps_rows(node):
        node = node.args[0]
    return node
