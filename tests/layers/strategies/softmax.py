"""softmax and its logarithm: every axis, rows of one element and of thousands."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from .pointwise import normal, random, shapes

#: classes, attention, segmentation, a long row
REAL = st.sampled_from([(3, 1000), (2, 12, 49, 49), (1, 21, 60, 61), (2, 9001)])


@st.composite
def problems(draw: st.DrawFn) -> dict[str, Any]:
    rng = random(draw)
    shape = draw(st.one_of(shapes(least_rank=1), REAL))
    if not shape:
        shape = (5,)
    x = normal(rng, shape) * np.float32(draw(st.sampled_from([0.1, 1, 20])))
    if draw(st.integers(0, 3)) == 0 and x.size:
        x.flat[rng.integers(0, x.size, max(x.size // 7, 1))] = -np.inf
    attrs = {
        "axis": draw(st.integers(0, len(shape) - 1)),
        draw(st.sampled_from(["log", "safe"])): draw(st.integers(0, 1)),
    }
    if "safe" in attrs and x.size:
        x[(0,) * (len(shape) - 1)] = -np.inf
    return {"attrs": attrs, "weights": {}, "inputs": [x]}
