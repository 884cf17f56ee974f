"""conv1d: conv2d's channels along one axis."""

from hypothesis import strategies as st

from .common import Problem, generator, normal, with_post_ops
from .conv2d import CHANNELS, output_size
from .sparse import with_zeros


@st.composite
def problems(draw: st.DrawFn, first: bool = False, depthwise: bool = False, product: bool = False) -> Problem:
    """Layers whose kernel fits the padded input. first: such as nets begin with; product: of each position alone."""
    group_c, group_k, groups = (draw(st.integers(1, 4)), draw(st.integers(8, 64)), 1) if first else draw(CHANNELS)
    if depthwise:
        group_c, group_k, groups = 1, 1, draw(st.integers(2, 150))
    if product:
        group_c, group_k, groups = draw(st.integers(8, 64)), draw(st.integers(8, 64)), 1
    kernel = 1 if product else draw(st.sampled_from([3, 5, 7]) if first else st.integers(1, 9))
    stride, dilation = (draw(st.one_of(st.just(1), st.integers(1, 3))) for _ in range(2))
    if first:
        dilation = 1
    if product:
        stride = dilation = 1
    before, after = (0, 0) if product else (draw(st.integers(0, 4)), draw(st.integers(0, 4)))
    least = max(1, dilation * (kernel - 1) + 1 - before - after)
    length = least + draw(st.integers(0, 70))
    batch = draw(st.sampled_from([1, 1, 2, 3, 0]))

    rng = generator(draw)
    attrs = {"stride": [stride], "padding": [before, after], "dilation": [dilation], "groups": groups}
    weights = {"weight": normal(rng, group_k * groups, group_c, kernel)}
    if draw(st.booleans()):
        weights["bias"] = normal(rng, group_k * groups)
    out = output_size(length, before, after, kernel, stride, dilation)
    inputs = [normal(rng, batch, group_c * groups, length)]
    inputs, post = with_post_ops(draw, rng, inputs, (batch, group_k * groups, out))
    return {"attrs": attrs, "weights": weights, "inputs": inputs, "post": post}


@st.composite
def plain(draw: st.DrawFn) -> Problem:
    """What Winograd's algorithm is for: a few taps, side by side, of many channels."""
    rng = generator(draw)
    c, k, taps, length = (draw(st.integers(*ends)) for ends in ((1, 40), (8, 40), (3, 5), (8, 60)))
    attrs = {"stride": [1], "padding": [1, 1], "dilation": [1], "groups": 1}
    weights = {"weight": normal(rng, k, c, taps), "bias": normal(rng, k)}
    return {"attrs": attrs, "weights": weights, "inputs": [normal(rng, 1, c, length)], "post": {}}


@st.composite
def quantized(draw: st.DrawFn) -> Problem:
    """What networks of bytes are made of: depthwise kernels and products, mostly clamped."""
    post = draw(st.sampled_from([{}, {"activation": "relu"}, {"activation": "clamp", "a": 0.0, "b": 6.0}]))
    problem = draw(problems(depthwise=True) | plain() | with_zeros(plain()))
    return {**problem, "inputs": problem["inputs"][:1], "post": post}


def special() -> list[st.SearchStrategy[Problem]]:
    """What random problems seldom are."""
    return [
        problems(first=True),
        problems(product=True),
        with_zeros(problems()),
        with_zeros(problems(), kinds=["blocks"]),
    ]
