"""Quantization of activations as torch exports it: ops that make bytes of reals (Q) and reals of bytes (DQ).

A region's blobs are reals. One whose values lie on the grid of a Q may be stored in bytes, which is the core's matter.
So a Q becomes a layer, and a DQ is nothing.
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


@converter(*QUANTIZE, moves_only=True)
def quantize(low: Lowering, call: Call) -> int:
    """Reals on a grid, where the host has bytes."""
    return low.add("quantize", [low.blob(call["input"])], post={"quantize": _grid(low, call)})


@converter(*DEQUANTIZE, moves_only=True)
def dequantize(low: Lowering, call: Call) -> int:
    """The reals that lie on the grid."""
    return low.blob(call["input"])
