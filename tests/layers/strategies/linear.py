"""linear: any rank, single rows, empty axes, weights of halves and of bytes."""

from typing import Any

import numpy as np
from hypothesis import strategies as st

from .common import Problem, generator, normal, stored, with_post_ops
from .sparse import with_zeros


@st.composite
def problems(draw: st.DrawFn, whole: bool = False) -> Problem:
    """Layers of up to three leading axes; whole: of whole vectors of outputs."""
    several = st.lists(st.integers(0, 6), max_size=3)
    one = st.integers(1, 70).map(lambda rows: [rows])
    lead = draw(several | one | st.just([1]))
    c = draw(st.integers(1, 70) | st.sampled_from([0, 300, 2100]))
    k = draw(st.sampled_from([16, 48, 64, 128]) if whole else st.integers(1, 70) | st.sampled_from([128, 1000]))

    rng = generator(draw)
    dtype = draw(st.sampled_from(["float32", "float32", "float16", "bfloat16", "int8", "int8"]))
    if dtype == "int8":
        scales = rng.uniform(0.001, 0.02, k if draw(st.booleans()) and k * c > 0 else 1)
        q: dict[str, Any] = {"scale": [float(np.float32(s)) for s in scales], "least": -128, "most": 127}
        weights: dict[str, Any] = {
            "weight": (rng.integers(-128, 128, (k, c), np.int8), q | ({"axis": 0} if scales.size > 1 else {}))
        }
    else:
        weights = {"weight": stored(normal(rng, k, c), dtype)}
    if draw(st.booleans()):
        weights["bias"] = normal(rng, k)
    inputs, post = with_post_ops(draw, rng, [normal(rng, *lead, c)], (*lead, k))
    return {"attrs": {}, "weights": weights, "inputs": inputs, "post": post}


def special() -> list[st.SearchStrategy[Problem]]:
    """What random problems never are."""
    return [with_zeros(problems()), with_zeros(problems(whole=True), kinds=["blocks"])]
