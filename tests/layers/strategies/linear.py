"""linear: any rank, single rows, empty axes, weights of halves."""

from hypothesis import strategies as st

from .common import Problem, generator, normal, stored, with_post_ops


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    """Layers of up to three leading axes."""
    several = st.lists(st.integers(0, 6), max_size=3)
    one = st.integers(1, 70).map(lambda rows: [rows])
    lead = draw(several | one | st.just([1]))
    c = draw(st.integers(1, 70) | st.sampled_from([0, 300, 2100]))
    k = draw(st.integers(1, 70) | st.sampled_from([128, 1000]))

    rng = generator(draw)
    weights = {
        "weight": stored(normal(rng, k, c), draw(st.sampled_from(["float32", "float32", "float16", "bfloat16"])))
    }
    if draw(st.booleans()):
        weights["bias"] = normal(rng, k)
    inputs, post = with_post_ops(draw, rng, [normal(rng, *lead, c)], (*lead, k))
    return {"attrs": {}, "weights": weights, "inputs": inputs, "post": post}
