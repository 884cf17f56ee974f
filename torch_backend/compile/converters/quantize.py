"""Quantization of activations as torch exports it: ops that make bytes of reals (Q) and reals of bytes (DQ).

A region's blobs are reals. One whose values lie on the grid of a Q may be stored in bytes, which is the core's matter.
So a Q becomes a layer, and a DQ is nothing. Where the scale is found in the run, both are arithmetic.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torch
from torch.fx import Node

from softneuro.torch_backend.compile.converters.registry import Call, converter

if TYPE_CHECKING:
    from softneuro.torch_backend.compile.conversion.lowering import Lowering

# By name: torch has these ops only once some module of its own is imported.
_OVERLOADS = ("default", "tensor", "tensor2")
QUANTIZE = {f"quantized_decomposed.quantize_per_tensor.{overload}" for overload in _OVERLOADS}
DEQUANTIZE = {f"quantized_decomposed.dequantize_per_tensor.{overload}" for overload in _OVERLOADS}
CHOOSE = "quantized_decomposed.choose_qparams.tensor"
_PARAMETERS = ("scale", "zero_point", "quant_min", "quant_max")


def check_grid(call: Call) -> str | None:
    """Why a Q's parameters are not for regions, as far as it is known before constants are."""
    for name in _PARAMETERS:
        if not call.is_constant(name) and not isinstance(call.args[name], int | float):
            return f"its {name} is not a constant"
    scale, zero, least, most = (None if call.is_constant(name) else call.args[name] for name in _PARAMETERS)
    if scale is not None and not 0 < torch.tensor(scale, dtype=torch.float32).item() < math.inf:
        return f"its scale is {scale}"
    if least is None or most is None:
        return None
    limits = torch.iinfo(call.args["dtype"])
    if not limits.min <= least < most <= limits.max:
        return f"{least} to {most} is no range of its type"
    inside = zero is None or least <= zero <= most
    return None if inside else f"its zero point {zero} is outside {least} to {most}"


def _grid(low: Lowering, call: Call) -> dict[str, Any]:
    """A Q's parameters as the core takes them; of signed bytes, those of unsigned ones on the same grid."""
    scale, *integers = (
        low.constant(value).item() if isinstance(value, Node) else value for value in map(call.__getitem__, _PARAMETERS)
    )
    shift = 128 if call["dtype"] == torch.int8 else 0
    zero, least, most = (int(value) + shift for value in integers)
    return {"scale": float(scale), "zero_point": zero, "least": least, "most": most, "reciprocal": True}


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)


def _check_chosen(call: Call) -> str | None:
    """Why a Q or a DQ of a scale that a region computes is not for it."""
    if not all(_is_number(call.args[name]) for name in ("quant_min", "quant_max")):
        return "its range is no two numbers"
    of_run = [call.args[name] for name in ("scale", "zero_point")]
    return None if all(isinstance(value, Node) or _is_number(value) for value in of_run) else "its scale is no number"


@converter(*QUANTIZE, check=_check_chosen, moves_only=True)
def quantize(low: Lowering, call: Call) -> int:
    """Reals on a grid, where the host has bytes; whole numbers, if the scale is found in the run."""
    blob, scale = low.blob(call["input"]), call["scale"]
    if not call.is_blob("scale"):
        return low.add("quantize", [blob], post={"quantize": _grid(low, call)})
    factor = low.add("binary", [low.blob(scale)], function="div", scalar=1.0, reversed=1)
    steps = low.add("binary", [low.add("binary", [blob, factor], function="mul")], function="round")
    moved = low.binary("add", steps, call["zero_point"], call.is_constant("zero_point"))
    least, most = float(call["quant_min"]), float(call["quant_max"])
    return _like_host(low, call, low.add("activation", [moved], function="clamp", a=least, b=most))


@converter(*DEQUANTIZE, check=_check_chosen, moves_only=True)
def dequantize(low: Lowering, call: Call) -> int:
    """The reals that lie on the grid, or that whole numbers stand for."""
    blob = low.blob(call["input"])
    if not call.is_blob("scale"):
        return blob
    moved = low.binary("sub", blob, call["zero_point"], call.is_constant("zero_point"))
    return _like_host(low, call, low.binary("mul", moved, call["scale"], False))


def _like_host(low: Lowering, call: Call, blob: int) -> int:
    """A number's shape has no axes, whatever it is joined with."""
    shape = tuple(call.output_shape)
    return blob if tuple(low.result.graph.shape(blob)) == shape else low.add("reshape", [blob], shape=list(shape))


def _check_choice(call: Call) -> str | None:
    least, most, eps = (call.args[name] for name in ("quant_min", "quant_max", "eps"))
    if not all(map(_is_number, (least, most, eps))) or call.args["dtype"] not in (torch.uint8, torch.int8):
        return "its range is not of bytes"
    limits = torch.iinfo(call.args["dtype"])
    within = limits.min <= least <= 0 < most <= limits.max
    return None if within else f"{least} to {most} is no range of bytes with zero in it"


@converter(CHOOSE, check=_check_choice, many=True)
def choose(low: Lowering, call: Call) -> list[int]:
    """The scale and the zero point of a tensor's own values."""
    eps = torch.tensor(call["eps"], dtype=torch.float32).item()
    grid = {"least": int(call["quant_min"]), "most": int(call["quant_max"]), "reciprocal": 1, "eps": eps}
    made = low.add("dynamic_quantize", [low.blob(call["input"])], **grid)
    _, *of_all = low.result.graph.outputs_of(made)
    return [low.add("reshape", [blob], shape=[1]) for blob in of_all]
