"""group_norm: from one group to one for each channel, weight and bias optional."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from .pointwise import channel_shapes, normal, random


@st.composite
def problems(draw: st.DrawFn) -> dict[str, Any]:
    rng, shape = random(draw), draw(channel_shapes())
    groups = draw(st.sampled_from([g for g in range(1, shape[1] + 1) if shape[1] % g == 0]))
    weights = {r: normal(rng, shape[1:2]) for r in ("weight", "bias") if draw(st.booleans())}
    x = normal(rng, shape) * 2 + draw(st.sampled_from([0, 5]))
    return {"attrs": {"groups": groups, "eps": draw(st.sampled_from([1e-6, 1e-3]))}, "weights": weights, "inputs": [x]}
