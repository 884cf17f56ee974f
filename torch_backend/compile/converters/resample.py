"""Padding, upsampling and rearrangement of pixels."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from torch.fx import Node

from softneuro.torch_backend.compile.converters.registry import Call, aten, converter, ranks

if TYPE_CHECKING:
    from softneuro.torch_backend.compile.conversion.lowering import Lowering


def pad(low: Lowering, call: Call, mode: str, value: float = 0.0) -> int:
    """The host lists pairs from the last axis backwards; the layer all beginnings, then all ends."""
    rank = call.rank()
    begin, end = [0] * rank, [0] * rank
    amounts = [int(v) for v in call["pad" if call.has("pad") else "padding"]]
    for index in range(len(amounts) // 2):
        begin[rank - 1 - index], end[rank - 1 - index] = amounts[2 * index], amounts[2 * index + 1]
    return low.add("pad", [low.blob(call["self"])], mode=mode, pads=begin + end, value=value)


@converter(aten.constant_pad_nd.default, moves_only=True)
def constant_pad(low: Lowering, call: Call) -> int:
    """Padding with a value; negative amounts crop."""
    return pad(low, call, "constant", float(call["value"]))


def _not_negative(call: Call) -> str | None:
    return "it crops" if any(isinstance(v, int) and v < 0 for v in call["padding"]) else None


@converter(aten.reflection_pad1d.default, aten.reflection_pad2d.default, check=_not_negative, moves_only=True)
def reflection_pad(low: Lowering, call: Call) -> int:
    """Padding by mirroring."""
    return pad(low, call, "reflect")


@converter(aten.replication_pad1d.default, aten.replication_pad2d.default, check=_not_negative, moves_only=True)
def replication_pad(low: Lowering, call: Call) -> int:
    """Padding with the edge."""
    return pad(low, call, "replicate")


@converter(aten.roll.default, moves_only=True)
def roll(low: Lowering, call: Call) -> int:
    """Axes turned around; without dims it is all elements, as if they were one axis."""
    shape, rank, blob = list(call.shape("self")), call.rank(), low.blob(call["self"])
    shifts, dims = ([v] if isinstance(v, int) else list(v) for v in (call["shifts"], call["dims"]))
    if not dims:
        flat = low.add("reshape", [blob], shape=[math.prod(shape)])
        return low.add("reshape", [_turned(low, flat, {0: int(shifts[0])}, [math.prod(shape)])], shape=shape)
    by_axis: dict[int, int] = {}
    for shift, dim in zip(shifts, dims, strict=True):
        by_axis[int(dim) % rank] = by_axis.get(int(dim) % rank, 0) + int(shift)
    return _turned(low, blob, by_axis, shape)


def _turned(low: Lowering, blob: int, shifts: dict[int, int], shape: list[int]) -> int:
    """What is cropped at an end of an axis comes in at the other."""
    begin = [shifts.get(axis, 0) % size for axis, size in enumerate(shape)]
    return low.add("pad", [blob], mode="wrap", pads=[*begin, *(-before for before in begin)])


def _plain_scales(call: Call) -> str | None:
    scales = [call.args[name] for name in ("scales_h", "scales_w", "scale_factors") if call.has(name)]
    numbers = [v for s in scales for v in (s if isinstance(s, list | tuple) else [s])]
    return "its scale is symbolic" if any(isinstance(v, Node) for v in numbers) else None


def upsample(low: Lowering, call: Call, mode: str) -> int:
    """Scales, where given, replace the ratio of sizes in the coordinates, as they do in the host."""
    attributes: dict[str, Any] = {"output_size": list(call.output_shape[2:])}
    if call.has("scale_factors"):
        scales = call["scale_factors"] or [None, None]
    else:
        scales = [call["scales_h"], call["scales_w"]]
    for name, scale in zip(("scale_h", "scale_w"), scales, strict=True):
        if scale is not None:
            attributes[name] = float(scale)
    if call.has("align_corners"):
        attributes["align_corners"] = int(call["align_corners"])
    source = low.blob(call["self" if call.has("self") else "input"])
    return low.add("upsample", [source], mode=mode, **attributes)


@converter(aten.upsample_nearest2d.default, aten.upsample_nearest2d.vec, check=_plain_scales)
def nearest(low: Lowering, call: Call) -> int:
    """Nearest neighbour, the host's default rule."""
    return upsample(low, call, "nearest")


@converter(aten.upsample_bilinear2d.default, aten.upsample_bilinear2d.vec, check=_plain_scales)
def bilinear(low: Lowering, call: Call) -> int:
    """Bilinear, both conventions of corners."""
    return upsample(low, call, "bilinear")


@converter(aten.pixel_shuffle.default, check=ranks("self", 4), moves_only=True)
def pixel_shuffle(low: Lowering, call: Call) -> int:
    """Channels to pixels."""
    return low.add("pixel_shuffle", [low.blob(call["self"])], factor=int(call["upscale_factor"]))
