"""conv_transpose2d: kernels larger and smaller than the stride, output padding, groups, empty batches."""

from hypothesis import assume
from hypothesis import strategies as st

from .common import Problem, generator, normal, with_post_ops


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    """Layers whose output is not empty along any axis but the batch."""
    group_c, group_k = draw(st.integers(1, 24)), draw(st.integers(1, 24))
    groups = draw(st.sampled_from([1, 1, 1, 2, 3]))
    axes = []
    for _ in range(2):
        kernel, stride, dilation = draw(st.integers(1, 5)), draw(st.integers(1, 4)), draw(st.sampled_from([1, 1, 1, 2]))
        padding, extra = draw(st.integers(0, 3)), draw(st.integers(0, max(stride, dilation) - 1))
        size = draw(st.integers(1, 14))
        out = (size - 1) * stride - 2 * padding + dilation * (kernel - 1) + extra + 1
        assume(out > 0)
        axes.append((kernel, stride, dilation, padding, extra, size, out))
    kernel, stride, dilation, padding, extra, size, out = zip(*axes, strict=True)
    batch = draw(st.sampled_from([1, 1, 2, 0]))

    rng = generator(draw)
    attrs = {
        "stride": list(stride),
        "padding": list(padding),
        "output_padding": list(extra),
        "dilation": list(dilation),
        "groups": groups,
    }
    weights = {"weight": normal(rng, group_c * groups, group_k, *kernel)}
    if draw(st.booleans()):
        weights["bias"] = normal(rng, group_k * groups)
    inputs = [normal(rng, batch, group_c * groups, *size)]
    inputs, post = with_post_ops(draw, rng, inputs, (batch, group_k * groups, *out))
    return {"attrs": attrs, "weights": weights, "inputs": inputs, "post": post}
