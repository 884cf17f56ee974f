"""Activation functions and softmax."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from softneuro.torch_backend.compile.converters.registry import Call, Convert, aten, constant, converter, equals

if TYPE_CHECKING:
    from softneuro.torch_backend.compile.conversion.lowering import Lowering


def _plain(function: str) -> Convert:
    def convert(low: Lowering, call: Call) -> int:
        return low.add("activation", [low.blob(call["self"])], function=function)

    return convert


for _target, _function in {
    aten.relu.default: "relu",
    aten.sigmoid.default: "sigmoid",
    aten.tanh.default: "tanh",
    aten.silu.default: "silu",
    aten.hardswish.default: "hardswish",
    aten.hardsigmoid.default: "hardsigmoid",
    aten.mish.default: "mish",
    aten.exp.default: "exp",
    aten.log.default: "log",
    aten.erf.default: "erf",
}.items():
    converter(_target)(_plain(_function))


def clamp(low: Lowering, source: Any, low_bound: float | None, high_bound: float | None) -> int:
    """Bounds on one side or both; one that is None leaves its side open, one that is NaN makes everything NaN."""
    low_bound = -math.inf if low_bound is None else float(low_bound)
    high_bound = math.inf if high_bound is None else float(high_bound)
    blob = low.blob(source)
    if math.isnan(low_bound) or math.isnan(high_bound):
        return low.add("binary", [blob], function="max", scalar=math.nan)
    if low_bound == -math.inf and high_bound == math.inf:
        return blob
    return low.add("activation", [blob], function="clamp", a=low_bound, b=high_bound)


@converter(aten.hardtanh.default)
def hardtanh(low: Lowering, call: Call) -> int:
    """Bounds on both sides; also what ReLU6 becomes."""
    return clamp(low, call["self"], call["min_val"], call["max_val"])


@converter(aten.relu6.default)
def relu6(low: Lowering, call: Call) -> int:
    """Bounds of 0 and 6."""
    return clamp(low, call["self"], 0.0, 6.0)


def _number_bounds(call: Call) -> str | None:
    bounds = [call.args[name] for name in ("min", "max") if call.has(name)]
    return None if all(b is None or isinstance(b, int | float) for b in bounds) else "its bounds are not numbers"


@converter(aten.clamp.default, aten.clamp_min.default, aten.clamp_max.default, check=_number_bounds)
def clamp_numbers(low: Lowering, call: Call) -> int:
    """Bounds that are numbers."""
    lower = call["min"] if call.has("min") else None
    return clamp(low, call["self"], lower, call["max"] if call.has("max") else None)


@converter(aten.leaky_relu.default)
def leaky_relu(low: Lowering, call: Call) -> int:
    """A slope for negative values."""
    return low.add("activation", [low.blob(call["self"])], function="leaky_relu", a=float(call["negative_slope"]))


def _softplus_bound(call: Call) -> str | None:
    return None if call["threshold"] >= 20 else f"threshold={call['threshold']} is not supported"


@converter(aten.softplus.default, check=_softplus_bound)
def softplus(low: Lowering, call: Call) -> int:
    """A smooth relu; from 20 on float32 has no difference to the line that torch makes of it."""
    beta, blob = float(call["beta"]), low.blob(call["self"])
    if beta == 1:
        return low.add("activation", [blob], function="softplus")
    blob = low.add("activation", [low.binary("mul", blob, beta, False)], function="softplus")
    return low.binary("div", blob, beta, False)


@converter(aten.elu.default, check=equals(scale=1, input_scale=1))
def elu(low: Lowering, call: Call) -> int:
    """Exponential for negative values."""
    return low.add("activation", [low.blob(call["self"])], function="elu", a=float(call["alpha"]))


@converter(aten.gelu.default)
def gelu(low: Lowering, call: Call) -> int:
    """Exact or by tanh."""
    function = "gelu_tanh" if call["approximate"] == "tanh" else "gelu"
    return low.add("activation", [low.blob(call["self"])], function=function)


def _prelu_weight(call: Call) -> str | None:
    shape, rank = call.shape("weight"), call.rank()
    count = 1
    for size in shape:
        count *= size
    if count == 1 or (rank >= 2 and count == call.shape("self")[1]):
        return None
    return "its weight is neither one slope nor one per channel"


@converter(aten._prelu_kernel.default, aten.prelu.default, check=(constant("weight"), _prelu_weight))
def prelu(low: Lowering, call: Call) -> int:
    """A learnt slope, one or one per channel; the kernel's weight is already shaped to broadcast."""
    return low.add("prelu", [low.blob(call["self"])], {"weight": low.constant(call["weight"]).reshape(-1)})


@converter(aten._softmax.default, aten._log_softmax.default, check=equals(half_to_float=False))
def softmax(low: Lowering, call: Call) -> int:
    """Softmax or its logarithm."""
    log = int(call.node.target is aten._log_softmax.default)
    return low.add("softmax", [low.blob(call["self"])], axis=call.axis("dim", call.rank()), log=log)
