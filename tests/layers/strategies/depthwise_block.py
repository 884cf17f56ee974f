"""depthwise_block: with and without its first and last stage, odd sizes, strides and padding, batches, empty ones."""

from hypothesis import strategies as st

from .common import ACTIVATIONS, Problem, generator, normal, with_post_ops
from .conv2d import output_size


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    """Blocks whose kernel fits the padded input."""
    expand, project = draw(st.sampled_from([(True, True), (True, False), (False, True)]))
    inner = draw(st.one_of(st.integers(2, 70), st.sampled_from([24, 40, 72, 96])))
    channels = draw(st.integers(1, 40)) if expand else inner
    kernel = draw(st.one_of(st.sampled_from([(3, 3), (5, 5)]), st.tuples(st.integers(1, 5), st.integers(1, 5))))
    stride = draw(st.one_of(st.sampled_from([(1, 1), (2, 2)]), st.tuples(st.integers(1, 3), st.integers(1, 3))))
    dilation = draw(st.sampled_from([(1, 1), (1, 1), (2, 1), (2, 2)]))
    same = tuple(d * (k - 1) // 2 for k, d in zip(kernel, dilation, strict=True))
    padding = draw(st.one_of(st.just((*same, *same)), st.tuples(*[st.integers(0, 4)] * 4)))
    least = [
        max(1, d * (k - 1) + 1 - before - after)
        for k, d, before, after in zip(kernel, dilation, padding[:2], padding[2:], strict=True)
    ]
    height, width = (size + draw(st.integers(0, 24)) for size in least)
    batch = draw(st.sampled_from([1, 1, 1, 2, 3, 0]))
    out = [
        output_size(*args)
        for args in zip((height, width), padding[:2], padding[2:], kernel, stride, dilation, strict=True)
    ]

    rng = generator(draw)
    attrs = {"stride": list(stride), "padding": list(padding), "dilation": list(dilation)}
    weights = {"depthwise_weight": normal(rng, inner, 1, *kernel)}
    last = inner
    if expand:
        weights["expand_weight"] = normal(rng, inner, channels, 1, 1)
    if project:
        last = draw(st.one_of(st.integers(1, 50), st.sampled_from([16, 24, 40])))
        weights["project_weight"] = normal(rng, last, inner, 1, 1)
    for stage, size in (("expand", inner), ("depthwise", inner), ("project", last)):
        if f"{stage}_weight" in weights and draw(st.booleans()):
            weights[f"{stage}_bias"] = normal(rng, size)
    for stage, here in (("expand", expand), ("depthwise", project)):
        if here:
            activation = draw(st.sampled_from(ACTIVATIONS))
            for name, value in activation.items():
                attrs[f"{stage}_{'function' if name == 'activation' else name}"] = value
    inputs = [normal(rng, batch, channels, height, width)]
    inputs, post = with_post_ops(draw, rng, inputs, (batch, last, *out))
    return {"attrs": attrs, "weights": weights, "inputs": inputs, "post": post}
