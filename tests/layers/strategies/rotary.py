"""rotary: angles that broadcast along batch, heads and rows, empty axes."""

from __future__ import annotations

from hypothesis import strategies as st

from .common import Problem, generator, normal


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    rng = generator(draw)
    shape = [draw(st.integers(0 if axis == 2 else 1, 5)) for axis in range(3)]
    width = 2 * draw(st.integers(1, 40))
    inputs = [normal(rng, *shape, width)]
    for _ in range(2):
        kept = [1 if draw(st.booleans()) else size for size in shape]
        inputs.append(normal(rng, *kept, width))
    return {"attrs": {}, "weights": {}, "inputs": inputs}
