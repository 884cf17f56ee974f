"""binary: every function; equal shapes, scalars, one value per channel, and any other broadcasting."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from .pointwise import FloatArray, channel_shapes, normal, random, shapes, with_post

BINARY = ("add", "sub", "mul", "div", "min", "max", "pow")
UNARY = ("abs", "sqrt", "rsqrt", "round", "sin", "cos")


def operands(function: str, rng: np.random.Generator, shape: tuple[int, ...], side: int) -> FloatArray:
    """Values for which the function is well conditioned; `side` 0 is left."""
    x = normal(rng, shape)
    if function == "div" and side == 1:
        return np.where(abs(x) < 0.1, np.float32(0.1), x)
    if function == "pow":
        return (abs(x) + np.float32(0.1)) if side == 0 else x
    return x


@st.composite
def broadcast_pair(draw: st.DrawFn) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Two shapes that broadcast, in every way that networks use."""
    kind = draw(st.sampled_from(["same", "channel", "shared channel", "one", "any", "lower rank"]))
    shape = draw(shapes() if kind in ("any", "lower rank") else channel_shapes())
    ones = (1,) * (len(shape) - 2)
    other = {
        "same": shape,
        "channel": (*shape[:2], *ones),
        "shared channel": (1, *shape[1:2], *ones),
        "one": (1,) * draw(st.integers(0, len(shape))),
        "any": tuple(1 if draw(st.booleans()) else size for size in shape),
        "lower rank": shape[draw(st.integers(0, len(shape))) :],
    }[kind]
    if kind == "any":
        shape = tuple(1 if draw(st.integers(0, 3)) == 0 else size for size in shape)
    return (shape, other) if draw(st.booleans()) else (other, shape)


@st.composite
def problems(draw: st.DrawFn) -> dict[str, Any]:
    rng = random(draw)
    function = draw(st.sampled_from([*BINARY, *UNARY]))
    if function in UNARY:
        shape = draw(shapes())
        x = normal(rng, shape)
        if function in ("sin", "cos"):
            x = x * np.float32(draw(st.sampled_from([1e-3, 1.0, 2000.0, 1e6])))
        elif function == "round":
            x = np.round(2 * x) / 2
        elif function != "abs":
            x = abs(x) + np.float32(0.1)
        return with_post(draw, rng, {"attrs": {"function": function}, "weights": {}, "inputs": [x]}, shape)
    left, right = draw(broadcast_pair())
    out_shape = np.broadcast_shapes(left, right)
    attrs: dict[str, Any] = {"function": function}
    weights: dict[str, FloatArray] = {}
    arrays = [operands(function, rng, left, 0), operands(function, rng, right, 1)]
    form = draw(st.sampled_from(["inputs", "inputs", "other", "scalar"]))
    if form == "inputs":
        inputs = arrays
    else:
        attrs["reversed"] = int(draw(st.booleans()))
        inputs = [arrays[attrs["reversed"]]]
        if form == "other":
            weights["other"] = arrays[1 - attrs["reversed"]]
        else:
            attrs["scalar"] = draw(st.sampled_from([0.5, 2.0, 3.0, 0.37]))
            out_shape = inputs[0].shape
    return with_post(draw, rng, {"attrs": attrs, "weights": weights, "inputs": inputs}, out_shape)


@st.composite
def quantized(draw: st.DrawFn) -> dict[str, Any]:
    """Two blobs whose values are bytes: alike, or one value for each channel on either side. Or one, and a number."""
    rng = random(draw)
    shape = draw(channel_shapes())
    left, right = shape, shape
    if len(shape) > 2 and draw(st.booleans()):
        right = (*shape[:2], *[1] * (len(shape) - 2))
        left, right = draw(st.sampled_from([(left, right), (right, left)]))
    post = draw(st.sampled_from([{}, {"activation": "relu"}, {"activation": "clamp", "a": -0.7, "b": 1.3}]))
    attrs: dict[str, Any] = {"function": draw(st.sampled_from(["add", "sub", "mul"]))}
    if draw(st.integers(0, 2)) == 0:
        attrs["scalar"] = draw(st.sampled_from([0.5, 2.0, 3.0, 0.37]))
        return {"attrs": attrs, "weights": {}, "inputs": [normal(rng, shape)], "post": post}
    return {"attrs": attrs, "weights": {}, "inputs": [normal(rng, left), normal(rng, right)], "post": post}
