"""Convolutions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from softneuro.torch_backend.compile.converters.registry import Call, aten, constant, converter

if TYPE_CHECKING:
    from softneuro.torch_backend.compile.conversion.lowering import Lowering


def _check(call: Call) -> str | None:
    rank = call.rank("input")
    if call["transposed"] and rank != 4:
        return f"a transposed convolution of rank {rank} is not supported"
    return None if rank in (3, 4) else f"a convolution of rank {rank} is not supported"


@converter(aten.convolution.default, check=(constant("weight", "bias"), _check))
def convolution(low: Lowering, call: Call) -> int:
    """`conv2d`, `conv1d` or `conv_transpose2d`."""
    weights = {"weight": low.weight(call["weight"]), **low.weights(bias=call["bias"])}
    spatial = call.rank("input") - 2

    def per_axis(name: str) -> list[int]:
        values = [int(v) for v in call[name]]
        return values if len(values) == spatial else values * spatial

    padding = per_axis("padding")
    attributes = {"stride": per_axis("stride"), "dilation": per_axis("dilation"), "groups": int(call["groups"])}
    inputs = [low.blob(call["input"])]
    if call["transposed"]:
        return low.add(
            "conv_transpose2d",
            inputs,
            weights,
            padding=padding,
            output_padding=per_axis("output_padding"),
            **attributes,
        )
    return low.add("conv2d" if spatial == 2 else "conv1d", inputs, weights, padding=padding * 2, **attributes)
