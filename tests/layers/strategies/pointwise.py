"""What the strategies of the element-wise and normalizing layers share: shapes and arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from hypothesis import strategies as st

FloatArray = npt.NDArray[np.float32]

POST_ACTIVATIONS: list[dict[str, Any]] = [
    {},
    {"activation": "relu"},
    {"activation": "clamp", "a": -0.5, "b": 0.75},
    {"activation": "clamp", "a": 0.25, "b": 2.0},
    {"activation": "hardswish"},
    {"activation": "sigmoid"},
    {"activation": "gelu"},
]

channels = st.sampled_from([1, 2, 3, 4, 8, 15, 16, 17, 32, 40])
batch = st.sampled_from([0, 1, 1, 1, 2, 3])
sizes = st.sampled_from([1, 1, 2, 3, 5, 7, 8, 12, 33])


def random(draw: st.DrawFn) -> np.random.Generator:
    """A generator from a drawn seed: contents are not worth shrinking."""
    return np.random.default_rng(draw(st.integers(0, 2**32 - 1)))


def normal(rng: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
    """White float32 values."""
    return rng.standard_normal(shape).astype(np.float32)


@st.composite
def channel_shapes(draw: st.DrawFn) -> tuple[int, ...]:
    """[N,C,...] of rank 2 to 5; now and then enough elements for several tasks."""
    if draw(st.integers(0, 9)) == 0:
        return (draw(st.sampled_from([1, 2])), draw(channels), 37, 41)
    spatial = draw(st.lists(sizes, min_size=0, max_size=3))
    if draw(st.integers(0, 15)) == 0:
        spatial = [*spatial[:2], 0]
    return (draw(batch), draw(channels), *spatial)


@st.composite
def shapes(draw: st.DrawFn, least_rank: int = 0) -> tuple[int, ...]:
    """Any rank up to 6."""
    if draw(st.booleans()):
        return draw(channel_shapes())
    return tuple(draw(st.lists(st.sampled_from([1, 2, 3, 5, 9]), min_size=least_rank, max_size=6)))


def with_post(
    draw: st.DrawFn, rng: np.random.Generator, problem: dict[str, Any], out_shape: tuple[int, ...]
) -> dict[str, Any]:
    """The problem with a residual and an activation, sometimes."""
    post = dict(draw(st.sampled_from(POST_ACTIVATIONS)))
    if draw(st.integers(0, 3)) == 0:
        post["residual"] = True
        problem["inputs"] = [*problem["inputs"], normal(rng, out_shape)]
    return {**problem, "post": post}
