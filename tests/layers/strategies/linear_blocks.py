"""linear_blocks: 4 and 8 bits, blocks of 16 and more, ragged last ones, odd counts of zero points."""

from typing import Any

import numpy as np
from hypothesis import strategies as st

from .common import Problem, generator, normal, with_post_ops


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    """Layers of up to three leading axes."""
    several = st.lists(st.integers(0, 6), max_size=3)
    one = st.integers(1, 70).map(lambda rows: [rows])
    lead = draw(several | one | st.integers(1, 4).map(lambda rows: [rows]))
    bits = draw(st.sampled_from([4, 4, 8]))
    block = draw(st.sampled_from([16, 32, 64, 128, 256]))
    c = draw(st.integers(1, 130) | st.sampled_from([0, 256, 700, 2100]))
    k = draw(st.integers(1, 70) | st.sampled_from([0, 128, 300]))
    blocks = -(-c // block)

    rng = generator(draw)
    weights: dict[str, Any] = {
        "weight": (rng.integers(0, 256, (k, blocks, block * bits // 8), np.uint8), "uint8"),
        "scales": rng.uniform(-0.1, 0.1, (k, blocks)).astype(np.float32),
    }
    if draw(st.booleans()):
        weights["zero_points"] = rng.integers(0, 256, (k, -(-blocks * bits // 8)), np.uint8), "uint8"
    if draw(st.booleans()):
        weights["bias"] = normal(rng, k)
    inputs, post = with_post_ops(draw, rng, [normal(rng, *lead, c)], (*lead, k))
    return {"attrs": {"bits": bits, "block": block}, "weights": weights, "inputs": inputs, "post": post}
