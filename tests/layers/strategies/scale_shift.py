"""scale_shift: one scale and one shift for each channel."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from .pointwise import channel_shapes, normal, random, with_post


@st.composite
def problems(draw: st.DrawFn) -> dict[str, Any]:
    rng, shape = random(draw), draw(channel_shapes())
    weights = {"scale": normal(rng, shape[1:2]), "shift": normal(rng, shape[1:2])}
    return with_post(draw, rng, {"attrs": {}, "weights": weights, "inputs": [normal(rng, shape)]}, shape)
