"""Pooling."""

from __future__ import annotations

from typing import TYPE_CHECKING

from softneuro.torch_backend.compile.converters.registry import Call, aten, converter, equals, ranks

if TYPE_CHECKING:
    from softneuro.torch_backend.compile.conversion.lowering import Lowering


def _pair(values: list[int] | int) -> list[int]:
    listed = [values] if isinstance(values, int) else list(values)
    return [int(v) for v in (listed * 2 if len(listed) == 1 else listed)]


@converter(aten.max_pool2d_with_indices.default, aten.max_pool2d.default, check=ranks("self", 4))
def max_pool2d(low: Lowering, call: Call) -> int:
    """Largest value of each window; the indices are not provided."""
    kernel = _pair(call["kernel_size"])
    return low.add(
        "pool2d",
        [low.blob(call["self"])],
        function="max",
        kernel=kernel,
        stride=_pair(call["stride"]) if call["stride"] else kernel,
        padding=_pair(call["padding"]) * 2,
        dilation=_pair(call["dilation"]),
        ceil_mode=int(call["ceil_mode"]),
    )


@converter(aten.avg_pool2d.default, check=(ranks("self", 4), equals(divisor_override=None)))
def avg_pool2d(low: Lowering, call: Call) -> int:
    """Mean of each window."""
    kernel = _pair(call["kernel_size"])
    return low.add(
        "pool2d",
        [low.blob(call["self"])],
        function="avg",
        kernel=kernel,
        stride=_pair(call["stride"]) if call["stride"] else kernel,
        padding=_pair(call["padding"]) * 2,
        ceil_mode=int(call["ceil_mode"]),
        count_include_pad=int(call["count_include_pad"]),
    )


@converter(aten._adaptive_avg_pool2d.default, aten.adaptive_max_pool2d.default, check=ranks("self", 4))
def adaptive_pool2d(low: Lowering, call: Call) -> int:
    """Windows that divide the image into a grid of given size."""
    function = "max" if call.node.target is aten.adaptive_max_pool2d.default else "avg"
    size = list(call.output_shape[2:])
    return low.add("adaptive_pool2d", [low.blob(call["self"])], function=function, output_size=size)
