"""reduce: any set of axes, kept or not; long rows and columns."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from .pointwise import channel_shapes, normal, random, shapes

#: long rows, long columns, a whole plane
LONG = st.sampled_from([(2, 30011), (5000, 3), (1, 8, 56, 57)])


@st.composite
def problems(draw: st.DrawFn) -> dict[str, Any]:
    rng = random(draw)
    shape = draw(st.one_of(shapes(least_rank=1), channel_shapes(), LONG))
    shape = shape or (4,)
    if len(shape) > 2 and draw(st.booleans()):
        axes = list(range(2, len(shape)))
    else:
        axes = draw(st.lists(st.integers(0, len(shape) - 1), min_size=1, max_size=len(shape), unique=True))
    x = normal(rng, shape) + draw(st.sampled_from([0, 3]))
    function = draw(st.sampled_from(["mean", "sum", "amax", "amin", "norm1", "norm2"]))
    if function in ("amax", "amin") and 0 in shape:
        function = "sum"
    return {
        "attrs": {"function": function, "axes": axes, "keepdim": draw(st.integers(0, 1))},
        "weights": {},
        "inputs": [x],
    }
