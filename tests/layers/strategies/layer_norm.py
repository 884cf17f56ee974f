"""layer_norm: statistics of one to all axes, weight and bias optional."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from .pointwise import normal, random, shapes


@st.composite
def problems(draw: st.DrawFn) -> dict[str, Any]:
    rng = random(draw)
    shape = draw(st.one_of(shapes(least_rank=1), st.sampled_from([(2, 197, 192), (1, 7, 7, 768), (3, 4099)])))
    shape = shape or (6,)
    axes = draw(st.integers(1, len(shape)))
    weights = {r: normal(rng, shape[-axes:]) for r in ("weight", "bias") if draw(st.booleans())}
    x = normal(rng, shape) * 2 + draw(st.sampled_from([0, 5]))
    return {"attrs": {"axes": axes, "eps": draw(st.sampled_from([1e-6, 1e-3]))}, "weights": weights, "inputs": [x]}
