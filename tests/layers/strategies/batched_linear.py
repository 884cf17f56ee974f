"""batched_linear: odd sizes, empty ones."""

from hypothesis import strategies as st

from .common import Problem, generator, normal


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    """Up to seven products."""
    batch = draw(st.sampled_from([1, 2, 3, 4, 7, 0]))
    rows = draw(st.integers(0, 70) | st.sampled_from([100, 130]))
    c = draw(st.integers(1, 70) | st.sampled_from([0, 96, 129]))
    k = draw(st.integers(1, 70) | st.sampled_from([96, 131]))
    rng = generator(draw)
    weights = {"weight": normal(rng, batch, k, c)}
    return {"attrs": {}, "weights": weights, "inputs": [normal(rng, batch, rows, c)]}
