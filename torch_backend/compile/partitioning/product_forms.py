"""The forms in which hosts spell out products by a weight's bytes, and which of a graph's products have one."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Set
from typing import Any

import torch
from torch.fx import Graph, Node

from softneuro.torch_backend.compile.conversion.products import Product, keeps_rows, last_size, source_rows
from softneuro.torch_backend.compile.conversion.quantized_weights import find_groups
from softneuro.torch_backend.compile.converters.quantize import DEQUANTIZE, QUANTIZE
from softneuro.torch_backend.compile.converters.registry import Call, aten, tensor_reason
from softneuro.torch_backend.compile.converters.shape import COPIES, RESHAPES
from softneuro.torch_backend.compile.partitioning.quantized import BYTES

_CHOOSE = "quantized_decomposed.choose_qparams.tensor"
_FILLED = (aten.zeros_like.default, aten.full_like.default, aten.full.default)


def find_products(graph: Graph, constants: Set[Node], declined: Set[Node]) -> list[Product]:
    """All that can be one layer each. `declined`: ops that no region is to have."""
    order = {node: i for i, node in enumerate(graph.nodes)}
    found: list[Product] = []
    for node in graph.nodes:
        match = _STARTS.get(node.target)
        if match is None or node in constants:
            continue
        try:
            product = match(_Match(constants, order), node)
        except _UnlikeError:
            continue
        found += [product] if declined.isdisjoint(product.members) else []
    while True:
        inside = {node for product in found for node in product.members}
        kept = [p for p in found if all(inside.issuperset(node.users) for node in p.members[:-1])]
        if len(kept) == len(found):
            return kept
        found = kept


class _UnlikeError(Exception):
    """The ops are others."""


def _want(condition: Any) -> None:
    if not condition:
        raise _UnlikeError


def _dtype(node: Node) -> torch.dtype:
    dtype: torch.dtype = node.meta["val"].dtype
    return dtype


class _Match:
    """One product: the ops passed on the way through it."""

    def __init__(self, constants: Set[Node], order: Mapping[Node, int]) -> None:
        self._constants = constants
        self._order = order
        self._members: set[Node] = set()

    def product(self, end: Node, **parts: Any) -> Product:
        """What has been found, up to this op; with the addition of a bias, if one follows."""
        last, reader = self._follow(end)
        if reader is not None and reader.target is aten.add.Tensor and parts.get("bias") is None:
            args = Call(reader, set()).args
            vector = self.is_constant(args["other"]) and list(args["other"].meta["val"].shape) == last_size(end)
            if vector and args["self"] is last and args["alpha"] == 1:
                parts["bias"], end = args["other"], reader
                self._members.add(end)
        _want(not any(tensor_reason(node.meta["val"]) for node in (parts["source"], end)))
        # Without what lies between the result and its reader.
        members = [node for node in self._members if self._order[node] <= self._order[end]]
        return Product(members=sorted(members, key=self._order.__getitem__), **parts)

    def is_constant(self, node: Any) -> bool:
        """Whether it is a tensor that follows from weights."""
        return isinstance(node, Node) and node in self._constants

    def _pass(self, node: Node) -> None:
        self._members.update([node] if node not in self._constants else [])

    def args(self, node: Any, *targets: Any) -> Mapping[str, Any]:
        """Arguments of an op that has to be one of these."""
        _want(isinstance(node, Node) and (node.target in targets or str(node.target) in targets))
        self._pass(node)
        return Call(node, set()).args

    def item(self, node: Any, index: int) -> Any:
        """What has this as one of its results."""
        _want(isinstance(node, Node) and node.target is operator.getitem and node.args[1] == index)
        self._pass(node)
        return node.args[0]

    def converted(self, node: Any, dtype: torch.dtype) -> Any:
        """What has been converted to this type."""
        args = self.args(node, aten._to_copy.default)
        _want(args["dtype"] == dtype)
        return args["self"]

    def back(self, node: Any) -> Any:
        """What these rows were before they got other axes."""
        while keeps_rows(node):
            self._pass(node)
            node = node.args[0]
        return node

    def filled(self, node: Any, value: int) -> None:
        """Wants all elements to be this one."""
        while isinstance(node, Node) and node.target in (*RESHAPES, *COPIES, aten._to_copy.default):
            self._pass(node)
            node = node.args[0]
        args = self.args(node, *_FILLED)
        _want(args.get("fill_value", 0) == value)

    def _follow(self, node: Node) -> tuple[Node, Node | None]:
        """These rows with other axes, and the only op that reads them, if it is only one."""
        while len(node.users) == 1:
            (reader,) = node.users
            if not keeps_rows(reader):
                return node, reader
            self._members.add(reader)
            node = reader
        return node, None

    def after(self, node: Node, target: Any) -> tuple[Node, Mapping[str, Any]]:
        """The only op that reads these rows, which has to be this one, and its arguments."""
        last, reader = self._follow(node)
        args = self.args(reader, target)
        _want(args["self"] is last and args.get("alpha", 1) == 1)
        assert reader is not None
        return reader, args

    def scaled(self, node: Node, columns: int) -> tuple[Node, Node]:
        """The product by a constant scale of all or each of the columns, which has to follow; and the scales."""
        end, args = self.after(node, aten.mul.Tensor)
        scales = args["other"]
        _want(self.is_constant(scales) and list(scales.meta["val"].shape) in ([columns], [1]))
        return end, scales


def _int_product(match: _Match, node: Node) -> Product:
    """Bytes by bytes, as torchao has it."""
    args = match.args(node, aten._int_mm.default)
    weight, values, end = args["mat2"], match.back(args["self"]), node
    _want(match.is_constant(weight) and _dtype(weight) == torch.int8)
    if _dtype(values) == torch.uint8:  # for instructions that multiply these by signed ones
        raised = match.args(match.converted(values, torch.uint8), aten.add.Tensor)
        end, lowered = match.after(end, aten.sub.Tensor)
        total = match.args(lowered["other"], aten.mul.Tensor)
        _want(raised["other"] == total["other"] == 128 and _is_sum(total["self"], weight))
        values = match.back(match.converted(raised["self"], torch.int32))
    clamped = match.args(match.back(match.converted(values, torch.int8)), aten.clamp.default)
    added = match.args(match.back(clamped["self"]), aten.add.Tensor)
    scaled = match.args(match.args(added["self"], aten.round.default)["self"], aten.mul.Tensor)
    factor = match.args(scaled["other"], aten.mul.Tensor, aten.reciprocal.default)
    if "other" in factor:
        _want(factor["other"] == 1)
        factor = match.args(factor["self"], aten.reciprocal.default)
    scale, zero = match.back(factor["self"]), match.back(added["other"])
    least, most = clamped["min"], clamped["max"]
    _want(all(isinstance(bound, int) for bound in (least, most)))
    end, args = match.after(end, aten._to_copy.default)
    _want(args["dtype"] == torch.float32)
    end, args = match.after(end, aten.mul.Tensor)
    _want(match.back(args["other"]) is scale)
    static = dynamic = None
    if match.is_constant(scale):
        _want(scale.meta["val"].numel() == 1 and match.is_constant(zero))
        match.filled(zero, 0)
        static = {"scale": scale, "zero_point": 128, "least": least + 128, "most": most + 128}  # of unsigned bytes
    else:
        read, dynamic = _range(match, scale, zero, least, most)
        _want(source_rows(read) is source_rows(scaled["self"]))
        if not dynamic["symmetric"]:
            end, args = match.after(end, aten.sub.Tensor)
            total = match.args(args["other"], aten.mul.Tensor)
            _want(_is_sum(total["other"], weight))
            start = match.args(match.back(total["self"]), aten.mul.Tensor)
            _want(match.back(match.converted(start["self"], torch.float32)) is zero)
            _want(match.back(start["other"]) is scale)
    end, scales = match.scaled(end, weight.meta["val"].shape[1])
    return match.product(
        end, source=scaled["self"], weight=weight, scales=scales, turned=True, static=static, dynamic=dynamic
    )


def _range(match: _Match, scale: Node, zero: Node, least: int, most: int) -> tuple[Node, dict[str, Any]]:
    """What a scale and a zero point are computed of, and how."""
    bounded = match.args(scale, aten.clamp.default)
    divided = match.args(bounded["self"], aten.div.Tensor)
    extent = match.args(divided["self"], aten.maximum.default, aten.sub.Tensor)
    symmetric = divided["self"].target is aten.maximum.default
    steps = (most - least) / 2 if symmetric else most - least
    _want(isinstance(bounded["min"], float) and bounded["max"] is None and divided["other"] == steps)
    if symmetric:
        above, below = extent["other"], match.args(extent["self"], aten.neg.default)["self"]
        match.filled(zero, 0)
    else:
        above, below = extent["self"], extent["other"]
        bounds = match.args(match.back(match.converted(zero, torch.int8)), aten.clamp.default)
        _want((bounds["min"], bounds["max"]) == (least, most))
        shifted = match.args(bounds["self"], aten.rsub.Scalar)
        _want(shifted["other"] == least and shifted["alpha"] == 1)
        ratio = match.args(match.args(shifted["self"], aten.round.default)["self"], aten.div.Tensor)
        _want(ratio["self"] is below and ratio["other"] is scale)
    reductions = []
    for node, op, reduction in ((above, aten.maximum, aten.amax), (below, aten.minimum, aten.amin)):
        pair = match.args(node, op.default)
        match.filled(pair["other"], 0)
        reductions.append(match.args(pair["self"], reduction.default))
    (read, *axes), other = ([r["self"], sorted(r["dim"]), r["keepdim"]] for r in reductions)
    _want([read, *axes] == other and axes[1])
    shape = read.meta["val"].shape
    rows = axes[0] == [len(shape) - 1]
    _want(rows or all(axis in axes[0] or size == 1 for axis, size in enumerate(shape) if isinstance(size, int)))
    _want(rows or all(axis in axes[0] for axis, size in enumerate(shape) if not isinstance(size, int)))
    return read, _dynamic(rows, symmetric, least, most, bounded["min"])


def _dynamic(rows: bool, symmetric: bool, least: int, most: int, eps: float) -> dict[str, Any]:
    eps = torch.tensor(eps, dtype=torch.float32).item()
    return {"rows": rows, "symmetric": symmetric, "least": least, "most": most, "eps": eps, "reciprocal": True}


def _is_sum(node: Any, weight: Node) -> bool:
    """Whether constants are the sums of a weight's columns."""
    while isinstance(node, Node) and node.target is aten._to_copy.default:
        node = node.args[0]
    if not isinstance(node, Node) or node.target is not aten.sum.dim_IntList:
        return False
    args = Call(node, set()).args
    (summed, turned), (whole, other) = _untransposed(args["self"]), _untransposed(weight)
    return summed is whole and [axis % 2 for axis in args["dim"]] == [int(turned != other)]


def _untransposed(node: Node) -> tuple[Node, bool]:
    turned = False
    while node.target in (*COPIES, aten.t.default):
        turned ^= node.target is aten.t.default
        node = node.args[0]
    return node, turned


def _real_product(match: _Match, node: Node) -> Product:
    """Reals by a weight's bytes that are made real, or reals that have been bytes by a weight."""
    args = match.args(node, *_OPERANDS)
    operands: Any = (args.get(name) for name in _OPERANDS[node.target])
    values, weight, bias = operands
    _want(match.is_constant(weight) and weight.meta["val"].dim() == 2)
    turned = node.target is not aten.linear.default
    columns = weight.meta["val"].shape[1 if turned else 0]
    if bias is not None:
        _want(match.is_constant(bias) and list(bias.meta["val"].shape) in ([columns], [1, columns]))
        _want(args.get("alpha", 1) == args.get("beta", 1) == 1)
    if weight.target is aten._to_copy.default and _dtype(weight.args[0]) == torch.int8:
        _want(bias is None)
        end, scales = match.scaled(node, columns)
        return match.product(end, source=values, weight=weight.args[0], scales=scales, turned=turned)
    if (groups := find_groups(weight, turned)) is not None:
        return match.product(node, source=values, weight=weight, turned=turned, bias=bias, groups=groups)
    made = match.args(match.back(values), *DEQUANTIZE)
    taken = match.args(match.back(made["input"]), *QUANTIZE)
    names = ("scale", "zero_point", "quant_min", "quant_max", "dtype")
    _want(all(made[name] is taken[name] or made[name] == taken[name] for name in names))
    choice = match.item(taken["scale"], 0)
    _want(match.item(taken["zero_point"], 1) is choice)
    chosen = match.args(choice, _CHOOSE)
    _want(all(chosen[name] == taken[name] for name in names[2:]) and taken["dtype"] in BYTES)
    _want(source_rows(chosen["input"]) is source_rows(taken["input"]))
    dynamic = _dynamic(False, False, taken["quant_min"], taken["quant_max"], chosen["eps"])
    return match.product(node, source=taken["input"], weight=weight, turned=turned, bias=bias, dynamic=dynamic)


_OPERANDS = {
    aten.mm.default: ("self", "mat2", ""),
    aten.addmm.default: ("mat1", "mat2", "self"),
    aten.linear.default: ("input", "weight", "bias"),
}
_STARTS = {aten._int_mm.default: _int_product, **dict.fromkeys(_OPERANDS, _real_product)}
