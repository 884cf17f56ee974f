"""batch_norm: constant statistics, weight and bias optional."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from .pointwise import channel_shapes, normal, random, with_post


@st.composite
def problems(draw: st.DrawFn) -> dict[str, Any]:
    rng, shape = random(draw), draw(channel_shapes())
    of_channel = shape[1:2]
    weights = {"mean": normal(rng, of_channel), "variance": abs(normal(rng, of_channel)) + 0.1}
    for role in ("weight", "bias"):
        if draw(st.booleans()):
            weights[role] = normal(rng, of_channel)
    eps = draw(st.sampled_from([0.0, 1e-5, 1e-3]))
    problem = {"attrs": {"eps": eps}, "weights": weights, "inputs": [normal(rng, shape)]}
    return with_post(draw, rng, problem, shape)
