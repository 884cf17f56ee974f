"""Matrix products."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch.fx import Node

from softneuro.torch_backend.compile.converters.registry import Call, aten, constant, converter, equals

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


@converter(aten.addmm.default, check=equals(alpha=1, beta=1))
def addmm(low: Lowering, call: Call) -> int:
    """A product plus a bias of any broadcastable shape."""
    constant_weight = call.is_constant("mat2")
    columns = call.shape("mat2")[1]
    if constant_weight and call.is_constant("self") and call.shape("self") in ((columns,), (1, columns)):
        bias = low.constant(call["self"]).reshape(columns)
        return product(low, call["mat1"], call["mat2"], True, bias)
    result = product(low, call["mat1"], call["mat2"], constant_weight)
    return low.binary("add", result, call["self"], call.is_constant("self"))


@converter(aten.baddbmm.default, check=equals(alpha=1, beta=1))
def baddbmm(low: Lowering, call: Call) -> int:
    """A batch of products plus a tensor."""
    result = low.add("matmul", [low.blob(call["batch1"]), low.blob(call["batch2"])])
    return low.binary("add", result, call["self"], call.is_constant("self"))
