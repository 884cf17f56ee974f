"""matmul: broadcast leading axes of unequal count, both transpositions, empty axes."""

from hypothesis import strategies as st

from .common import Problem, generator, normal, with_post_ops


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    """Pairs of operands whose leading axes broadcast."""
    m, n, k = (draw(st.integers(1, 50) | st.sampled_from([0, 64, 100])) for _ in range(3))
    lead = draw(st.lists(st.integers(1, 3), max_size=3))
    sides = []
    for _ in range(2):
        kept = lead[draw(st.integers(0, len(lead))) :]
        sides.append([1 if draw(st.integers(0, 3)) == 0 else size for size in kept])
    a_lead, b_lead = sides
    rank = max(len(a_lead), len(b_lead))
    padded = [[1] * (rank - len(side)) + side for side in sides]
    out_lead = [max(pair) for pair in zip(*padded, strict=True)]
    transpose_a, transpose_b = draw(st.booleans()), draw(st.booleans())

    rng = generator(draw)
    a = normal(rng, *a_lead, *((k, m) if transpose_a else (m, k)))
    b = normal(rng, *b_lead, *((n, k) if transpose_b else (k, n)))
    attrs = {"transpose_a": int(transpose_a), "transpose_b": int(transpose_b)}
    inputs, post = with_post_ops(draw, rng, [a, b], (*out_lead, m, n))
    return {"attrs": attrs, "weights": {}, "inputs": inputs, "post": post}
