"""dynamic_linear: a scale per row or tensor, signed and unsigned grids, weights with and without zero points."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from .common import Problem, generator, normal, with_post_ops

GRIDS = [(0, 255), (0, 127), (-128, 127), (-127, 127)]


def weight(draw: st.DrawFn, rng: np.random.Generator, k: int, c: int) -> tuple[np.ndarray, dict[str, Any]]:
    """Signed bytes as graphs take them, per tensor or output, now and then as large as they can be."""
    count = k if draw(st.booleans()) and k else 1
    values = rng.choice(np.int8([-128, 127]), (k, c)) if draw(st.booleans()) else rng.integers(-128, 128, (k, c))
    q = {"scale": rng.uniform(0.001, 0.02, count).astype(np.float32).tolist(), "least": -128, "most": 127}
    if count > 1:
        q["axis"] = 0
    if draw(st.integers(0, 3)) == 0:
        q["zero_point"] = rng.integers(-128, 128, count).tolist()
    return values.astype(np.int8), q


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    """Layers of up to three leading axes."""
    lead = draw(st.lists(st.integers(0, 6), max_size=3) | st.integers(1, 300).map(lambda rows: [rows]) | st.just([1]))
    c = draw(st.integers(1, 70) | st.sampled_from([0, 300, 2100]))
    k = draw(st.integers(1, 70) | st.sampled_from([128, 1000]))
    rng = generator(draw)
    least, most = draw(st.sampled_from(GRIDS))
    attrs = {
        "least": least,
        "most": most,
        **{name: draw(st.booleans()) for name in ("rows", "symmetric", "reciprocal")},
    }
    if draw(st.booleans()):
        attrs["eps"] = draw(st.sampled_from([1e-5, 0.02]))
    weights: dict[str, Any] = {"weight": weight(draw, rng, k, c)}
    if draw(st.booleans()):
        weights["bias"] = normal(rng, k)
    size = draw(st.sampled_from([1.0, 1.0, 1e-30, 0.0]))
    x = normal(rng, *lead, c) * np.float32(size) + np.float32(draw(st.sampled_from([0, 0, 3, -3])) * size)
    inputs, post = with_post_ops(draw, rng, [x.astype(np.float32)], (*lead, k))
    return {"attrs": attrs, "weights": weights, "inputs": inputs, "post": post}
