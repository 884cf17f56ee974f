"""prelu: one weight, or one for each channel."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from .pointwise import channel_shapes, normal, random, with_post


@st.composite
def problems(draw: st.DrawFn) -> dict[str, Any]:
    rng, shape = random(draw), draw(channel_shapes())
    weight = normal(rng, (1 if draw(st.booleans()) else shape[1],))
    problem = {"attrs": {}, "weights": {"weight": weight}, "inputs": [normal(rng, shape)]}
    return with_post(draw, rng, problem, shape)
