"""Matrix products."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch.fx import Node

from softneuro.torch_backend.compile.converters.registry import Call, aten, constant, converter

if TYPE_CHECKING:
    from softneuro.torch_backend.compile.conversion.lowering import Lowering


def weighted(low: Lowering, blob: int, weight: Node, turned: bool, bias: torch.Tensor | None = None) -> int:
    """The product by a constant, which has a row per result, or a column where `turned`."""
    biases = {"bias": bias} if bias is not None else {}
    if (blocks := low.blocks(weight, turned)) is not None:
        weights, bits = blocks
        block = weights["weight"].shape[2] * 8 // bits
        return low.add("linear_blocks", [blob], {**weights, **biases}, bits=bits, block=block)
    value = low.weight(weight)
    return low.add("linear", [blob], {"weight": value.t() if turned else value, **biases})


@converter(aten.linear.default, check=constant("weight", "bias"))
def linear(low: Lowering, call: Call) -> int:
    """A linear layer that the host has kept whole."""
    return weighted(low, low.blob(call["input"]), call["weight"], False, low.weights(bias=call["bias"]).get("bias"))


def product(low: Lowering, a: Any, b: Any, constant_b: bool, bias: Any = None) -> int:
    """The product a @ b: `linear` where b[K,N] is a weight, else `matmul`."""
    if constant_b:
        return weighted(low, low.blob(a), b, True, bias)
    return low.add("matmul", [low.blob(a), low.blob(b)])


@converter(aten._int_mm.default, check=constant("mat2"))
@converter(aten.mm.default)
def mm(low: Lowering, call: Call) -> int:
    """A product of two matrices."""
    return product(low, call["self"], call["mat2"], call.is_constant("mat2"))


@converter(aten.bmm.default)
def bmm(low: Lowering, call: Call) -> int:
    """A batch of products; `linear` where a weight is the same in all of them, which is how some of rank 3 arrive."""
    if call.is_constant("mat2"):
        weight = low.weight(call["mat2"])
        if weight.stride(0) == 0 or call.shape("mat2")[0] == 1:
            return low.add("linear", [low.blob(call["self"])], {"weight": weight[0].t()})
    return low.add("matmul", [low.blob(call["self"]), low.blob(call["mat2"])])


def _known_factors(call: Call) -> str | None:
    numbers = all(isinstance(call.args[name], int | float) for name in ("alpha", "beta"))
    return None if numbers else "a factor is no number"


def _added(low: Lowering, call: Call, product: int) -> int:
    """A product times `alpha`, plus a tensor times `beta`, which is not looked at where that is zero."""
    alpha, beta = call["alpha"], call["beta"]
    if alpha != 1:
        product = low.binary("mul", product, alpha, False)
    if beta == 0:
        return product
    if beta == 1:
        return low.binary("add", product, call["self"], call.is_constant("self"))
    added = low.binary("mul", low.blob(call["self"]), beta, False)
    return low.add("binary", [product, added], function="add")


@converter(aten.addmm.default, check=_known_factors)
def addmm(low: Lowering, call: Call) -> int:
    """A product plus a bias of any broadcastable shape."""
    constant_weight = call.is_constant("mat2")
    columns = call.shape("mat2")[1]
    is_bias = call.is_constant("self") and call.shape("self") in ((columns,), (1, columns))
    if constant_weight and is_bias and call["alpha"] == call["beta"] == 1:
        bias = low.constant(call["self"]).reshape(columns)
        return product(low, call["mat1"], call["mat2"], True, bias)
    return _added(low, call, product(low, call["mat1"], call["mat2"], constant_weight))


@converter(aten.baddbmm.default, check=_known_factors)
def baddbmm(low: Lowering, call: Call) -> int:
    """A batch of products plus a tensor."""
    return _added(low, call, low.add("matmul", [low.blob(call["batch1"]), low.blob(call["batch2"])]))
