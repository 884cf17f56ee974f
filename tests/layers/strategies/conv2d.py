"""conv2d: odd sizes, strides, dilations, groups, asymmetric padding, empty batches; some shapes of real nets."""

from hypothesis import strategies as st

from .common import Problem, generator, normal, with_post_ops
from .sparse import with_zeros

#: input channels per group, output channels per group, groups
CHANNELS = st.one_of(
    st.tuples(st.integers(1, 40), st.integers(1, 70), st.just(1)),
    st.tuples(st.integers(1, 5), st.integers(1, 5), st.integers(2, 7)),
    st.tuples(st.just(1), st.just(1), st.integers(2, 70)),
    st.tuples(st.just(1), st.integers(2, 3), st.integers(2, 20)),
    st.tuples(st.sampled_from([8, 16, 32]), st.sampled_from([8, 16, 32]), st.integers(2, 4)),
    st.tuples(st.integers(1, 4), st.sampled_from([16, 32, 64, 24]), st.just(1)),
    st.tuples(st.sampled_from([64, 128]), st.sampled_from([64, 96]), st.just(1)),
)


def output_size(size: int, before: int, after: int, kernel: int, stride: int, dilation: int) -> int:
    """Output size along one axis; below one if the kernel does not fit."""
    return (size + before + after - dilation * (kernel - 1) - 1) // stride + 1


@st.composite
def problems(draw: st.DrawFn, first: bool = False, pointwise: bool = False) -> Problem:
    """Layers whose kernel fits the padded input. first: such as nets begin with; pointwise: products of matrices."""
    if first:
        group_c, group_k, groups = draw(st.integers(1, 4)), draw(st.integers(8, 64)), 1
        kernel = draw(st.sampled_from([(3, 3), (5, 5), (7, 7)]))
    else:
        group_c, group_k, groups = draw(CHANNELS)
        kernel = draw(st.one_of(st.sampled_from([(1, 1), (3, 3)]), st.tuples(st.integers(1, 7), st.integers(1, 7))))
    stride = draw(st.one_of(st.sampled_from([(1, 1), (2, 2)]), st.tuples(st.integers(1, 3), st.integers(1, 3))))
    if pointwise:
        group_c, group_k, groups = draw(st.integers(16, 128)), draw(st.integers(16, 96)), 1
        kernel = stride = (1, 1)
    dilation = (1, 1)
    if not first:
        dilation = draw(st.one_of(st.just((1, 1)), st.tuples(st.integers(1, 3), st.integers(1, 3))))
    same = tuple(d * (k - 1) // 2 for k, d in zip(kernel, dilation, strict=True))
    padding = draw(
        st.one_of(
            st.just((*same, *same)),
            st.just((0, 0, 0, 0)),
            st.tuples(st.integers(0, 4), st.integers(0, 4), st.integers(0, 4), st.integers(0, 4)),
        )
    )
    least = [
        max(1, d * (k - 1) + 1 - before - after)
        for k, d, before, after in zip(kernel, dilation, padding[:2], padding[2:], strict=True)
    ]
    height, width = (size + draw(st.integers(0, 20)) for size in least)
    batch = draw(st.sampled_from([1, 1, 1, 2, 3, 0]))
    out = [
        output_size(*args)
        for args in zip((height, width), padding[:2], padding[2:], kernel, stride, dilation, strict=True)
    ]

    rng = generator(draw)
    attrs = {"stride": list(stride), "padding": list(padding), "dilation": list(dilation), "groups": groups}
    weights = {"weight": normal(rng, group_k * groups, group_c, *kernel)}
    if draw(st.booleans()):
        weights["bias"] = normal(rng, group_k * groups)
    inputs = [normal(rng, batch, group_c * groups, height, width)]
    inputs, post = with_post_ops(draw, rng, inputs, (batch, group_k * groups, *out))
    return {"attrs": attrs, "weights": weights, "inputs": inputs, "post": post}


@st.composite
def whole_blocks(draw: st.DrawFn) -> Problem:
    """Channels in whole blocks and no stride: what a convolution in stages asks for."""
    kernel = draw(st.one_of(st.just((3, 3)), st.tuples(st.integers(1, 7), st.integers(1, 7))))
    c, k = draw(st.sampled_from([16, 32, 64, 80])), draw(st.sampled_from([16, 32, 48, 96]))
    padding = [draw(st.integers(0, 3)) for _ in range(4)]
    least = [max(1, kernel[i] - padding[i] - padding[i + 2]) for i in range(2)]
    size = [low + draw(st.integers(0, 20)) for low in least]
    batch = draw(st.integers(1, 3))
    out = [size[i] + padding[i] + padding[i + 2] - kernel[i] + 1 for i in range(2)]

    rng = generator(draw)
    weights = {"weight": normal(rng, k, c, *kernel), "bias": normal(rng, k)}
    inputs, post = with_post_ops(draw, rng, [normal(rng, batch, c, *size)], (batch, k, *out))
    return {"attrs": {"padding": padding}, "weights": weights, "inputs": inputs, "post": post}


@st.composite
def of_padding(draw: st.DrawFn) -> Problem:
    """Images without rows or columns, all of them padding."""
    kernel, stride = draw(st.integers(1, 3)), draw(st.integers(1, 2))
    size = draw(st.sampled_from([(0, 5), (5, 0), (0, 0)]))
    c, k = draw(st.sampled_from([3, 16])), draw(st.sampled_from([5, 16]))
    out = [output_size(n, 3, 3, kernel, stride, 1) for n in size]

    rng = generator(draw)
    weights = {"weight": normal(rng, k, c, kernel, kernel), "bias": normal(rng, k)}
    inputs, post = with_post_ops(draw, rng, [normal(rng, 1, c, *size)], (1, k, *out))
    return {"attrs": {"padding": [3] * 4, "stride": [stride] * 2}, "weights": weights, "inputs": inputs, "post": post}


def special() -> list[st.SearchStrategy[Problem]]:
    """What random problems seldom are."""
    return [
        problems(first=True),
        problems(pointwise=True),
        whole_blocks(),
        with_zeros(of_padding()),
        with_zeros(problems()),
        with_zeros(problems(), kinds=["blocks"]),
    ]


@st.composite
def quantized(draw: st.DrawFn) -> Problem:
    """What networks of bytes are made of: depthwise kernels, and as many channels as tiles have; mostly clamped."""
    channels = draw(st.integers(2, 150))
    usual = draw(st.sampled_from([True, False, False]))  # what Winograd's method is for
    depthwise = not usual and draw(st.booleans())
    kernel, stride, dilation = (3, 3), 1, 1
    if not usual:
        kernel = (draw(st.sampled_from([1, 3, 3, 5, 7, 4])), draw(st.sampled_from([1, 3, 3, 5, 7, 2])))
        stride, dilation = draw(st.sampled_from([1, 1, 2, 3])), draw(st.sampled_from([1, 1, 2]))
    padding = [draw(st.integers(0, 3)) for _ in range(4)]
    least = [max(1, dilation * (kernel[i] - 1) + 1 - padding[i] - padding[i + 2]) for i in range(2)]
    size = [low + draw(st.integers(0, 12)) for low in least]
    batch = draw(st.sampled_from([1, 1, 2]))
    rng = generator(draw)
    outputs = channels if depthwise else draw(st.sampled_from([3, 16, 24, 64]))
    weights = {"weight": normal(rng, outputs, 1 if depthwise else channels, *kernel)}
    if draw(st.booleans()):
        weights["bias"] = normal(rng, outputs)
    post = draw(st.sampled_from([{}, {"activation": "relu"}, {"activation": "clamp", "a": 0.0, "b": 6.0}]))
    attrs = {"stride": [stride] * 2, "padding": padding, "dilation": [dilation] * 2}
    attrs["groups"] = channels if depthwise else 1
    return {"attrs": attrs, "weights": weights, "inputs": [normal(rng, batch, channels, *size)], "post": post}
