"""Arithmetic of two operands, with broadcasting."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch.fx import Node

from softneuro.torch_backend.compile.converters.registry import Call, Convert, aten, converter, equals
from softneuro.torch_backend.compile.ops.reals import INTEGERS, REALS, WHOLE

if TYPE_CHECKING:
    from softneuro.torch_backend.compile.conversion.lowering import Lowering


def _operands(call: Call) -> str | None:
    """A constant operand must not promote the result, and one operand must flow through the graph."""
    names = [name for name in ("self", "other", "exponent") if call.has(name)]
    if not any(call.is_blob(name) for name in names):
        return "no operand is a tensor of the region"
    for name in names:
        value = call.args[name]
        if isinstance(value, Node) and not call.is_blob(name):
            meta = call.value(value)
            if not isinstance(meta, torch.Tensor):
                return f"its {name} is a symbolic number"
            if not meta.dtype.is_floating_point and meta.dtype not in (*INTEGERS, *WHOLE):
                return f"its {name} is {meta.dtype}"
        elif not isinstance(value, Node | int | float):
            return f"its {name} is not a real number"
    return "it computes with booleans" if call.output.dtype == torch.bool else None


def two_operands(low: Lowering, call: Call, function: str, left: str, right: str) -> int:
    """Blobs, constants and numbers on either side."""
    a, b = call[left], call[right]
    if call.output.dtype in WHOLE and low.is_whole(a, b):
        dtype = call.output.dtype
        return low.add("integer_binary", [low.operand(a, dtype), low.operand(b, dtype)], function=function)
    if not call.is_blob(left):
        return low.binary(function, low.blob(b), a, call.is_constant(left), reverse=True)
    return low.binary(function, low.blob(a), b, call.is_constant(right))


def _binary(function: str, left: str = "self", right: str = "other") -> Convert:
    def convert(low: Lowering, call: Call) -> int:
        return two_operands(low, call, function, left, right)

    return convert


for _target, _function in {
    aten.mul.Tensor: "mul",
    aten.mul.Scalar: "mul",
    aten.div.Tensor: "div",
    aten.div.Scalar: "div",
    aten.minimum.default: "min",
    aten.maximum.default: "max",
}.items():
    converter(_target, check=_operands, takes_bytes=True, whole=_function != "div")(_binary(_function))
for _target, _function in {
    aten.add.Tensor: "add",
    aten.add.Scalar: "add",
    aten.sub.Tensor: "sub",
    aten.sub.Scalar: "sub",
}.items():
    converter(_target, check=(equals(alpha=1), _operands), takes_bytes=True, whole=True)(_binary(_function))
converter(aten.rsub.Tensor, aten.rsub.Scalar, check=(equals(alpha=1), _operands), takes_bytes=True, whole=True)(
    _binary("sub", "other", "self")
)
converter(aten.pow.Tensor_Tensor, aten.pow.Scalar, check=_operands)(_binary("pow", "self", "exponent"))
_ROOTS = {0.5: "sqrt", -0.5: "rsqrt"}


@converter(aten.pow.Tensor_Scalar, check=_operands)
def pow_by_number(low: Lowering, call: Call) -> int:
    """Torch takes roots by 1/2 and -1/2, which differ from powers at -infinity and -0. In float16 it takes powers."""
    function = _ROOTS.get(call["exponent"])
    if function is None or call.value(call["self"]).dtype == torch.float16:
        return two_operands(low, call, "pow", "self", "exponent")
    return low.add("binary", [low.blob(call["self"])], function=function)


def _reals(call: Call) -> str | None:
    names = ("self", "tensor1", "tensor2")
    if not any(call.is_blob(name) for name in names):
        return "no operand is a tensor of the region"
    others = (call.value(call.args[name]).dtype for name in names if not call.is_blob(name))
    return next((f"it computes with {dtype}" for dtype in others if not dtype.is_floating_point), None)


@converter(aten.addcmul.default, check=_reals)
def add_product(low: Lowering, call: Call) -> int:
    """A product of two, perhaps times a number, and what is added to it."""
    names = ("tensor1", "tensor2") if call.is_blob("tensor1") else ("tensor2", "tensor1")
    product = two_operands(low, call, "mul", *names)
    if call["value"] != 1:
        product = low.binary("mul", product, call["value"], False)
    return low.binary("add", product, call["self"], call.is_constant("self"))


def _alone(function: str) -> Convert:
    return lambda low, call: low.add("binary", [low.blob(call["self"])], function=function)


converter(aten.abs.default)(_alone("abs"))
converter(aten.sqrt.default)(_alone("sqrt"))
converter(aten.rsqrt.default)(_alone("rsqrt"))
converter(aten.sin.default)(_alone("sin"))
converter(aten.cos.default)(_alone("cos"))
converter(aten.round.default)(_alone("round"))


def _with_number(function: str, number: float, reverse: bool = False) -> Convert:
    def convert(low: Lowering, call: Call) -> int:
        return low.binary(function, low.blob(call["self"]), number, False, reverse=reverse)

    return convert


@converter(aten.neg.default, whole=True)
def negative(low: Lowering, call: Call) -> int:
    """Zero less an integer, or a real times -1, which keeps the sign of zeros."""
    if low.is_whole(call["self"]):
        blobs = [low.operand(number, call.output.dtype) for number in (0, call["self"])]
        return low.add("integer_binary", blobs, function="sub")
    return low.binary("mul", low.blob(call["self"]), -1.0, False)


converter(aten.square.default)(_with_number("pow", 2.0))
converter(aten.reciprocal.default)(_with_number("div", 1.0, reverse=True))


def _known_type(call: Call) -> str | None:
    unchanged: dict[str, Any] = {"dtype": (None, *REALS, *INTEGERS, *WHOLE), "layout": (None, torch.strided)}
    for name, allowed in unchanged.items():
        if call.args[name] not in allowed:
            return f"it converts to {call.args[name]}"
    return None


@converter(aten._to_copy.default, check=_known_type, moves_only=True, takes_bytes=True, whole=True)
def to_copy(low: Lowering, call: Call) -> int:
    """A conversion. Blobs are values, so nothing is left of one between types of reals, or of what is real inside."""
    dtype = call.output.dtype
    if dtype not in WHOLE:
        return low.blob(call["self"])
    blob = low.value(call["self"])
    real_inside = dtype == torch.int32 and not low.is_whole(call["self"])
    return blob if real_inside else low.as_type(blob, dtype)
