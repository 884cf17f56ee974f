"""depthwise_block: with and without its first and last stage, odd sizes, strides and padding, batches, empty ones.

The first stage is a 1x1 convolution or, as where a net begins, one of few channels and any window, at times of bytes.
"""

import numpy as np
from hypothesis import strategies as st

from .common import ACTIVATIONS, Problem, generator, normal, with_post_ops
from .conv2d import output_size
from .image_conv import tables

Pair = tuple[int, int]
Window = tuple[Pair, Pair, Pair, tuple[int, ...]]  # kernel, stride, dilation, padding


@st.composite
def windows(draw: st.DrawFn) -> Window:
    kernel = draw(st.one_of(st.sampled_from([(3, 3), (5, 5)]), st.tuples(st.integers(1, 5), st.integers(1, 5))))
    stride = draw(st.one_of(st.sampled_from([(1, 1), (2, 2)]), st.tuples(st.integers(1, 3), st.integers(1, 3))))
    dilation = draw(st.sampled_from([(1, 1), (1, 1), (2, 1), (2, 2)]))
    same = tuple(d * (k - 1) // 2 for k, d in zip(kernel, dilation, strict=True))
    padding = draw(st.one_of(st.just((*same, *same)), st.tuples(*[st.integers(0, 4)] * 4)))
    return kernel, stride, dilation, padding


def inputs_of(window: Window, outputs: Pair) -> list[int]:
    """Least size of the input, by axis, that makes so much output."""
    kernel, stride, dilation, padding = window
    sizes = zip(outputs, kernel, stride, dilation, padding[:2], padding[2:], strict=True)
    return [max(1, (n - 1) * s + d * (k - 1) + 1 - before - after) for n, k, s, d, before, after in sizes]


def outputs_of(window: Window, inputs: Pair) -> list[int]:
    kernel, stride, dilation, padding = window
    sizes = zip(inputs, padding[:2], padding[2:], kernel, stride, dilation, strict=True)
    return [output_size(*size) for size in sizes]


@st.composite
def problems(draw: st.DrawFn, of_bytes: bool = False) -> Problem:
    """Blocks whose kernels fit the padded inputs."""
    expand, project = draw(st.sampled_from([(True, True), (True, False), (of_bytes, True)]))
    first = of_bytes or (expand and draw(st.booleans()))
    inner = draw(st.one_of(st.integers(2, 70), st.sampled_from([24, 40, 72, 96])))
    channels = draw(st.integers(1, 4) if first else st.integers(1, 40)) if expand else inner
    window = draw(windows())
    kernel, stride, dilation, padding = window
    height, width = (size + draw(st.integers(0, 24)) for size in inputs_of(window, (1, 1)))
    batch = draw(st.sampled_from([1, 1, 1, 2, 3, 0]))
    attrs = {"stride": list(stride), "padding": list(padding), "dilation": list(dilation)}
    expand_kernel = (1, 1)
    if first:
        around = draw(windows())
        expand_kernel, *rest = around
        attrs |= {f"expand_{name}": list(rest[i]) for i, name in enumerate(("stride", "dilation", "padding"))}
        height, width = inputs_of(around, (height, width))
        out = outputs_of(window, outputs_of(around, (height, width)))
    else:
        out = outputs_of(window, (height, width))

    rng = generator(draw)
    weights = {"depthwise_weight": normal(rng, inner, 1, *kernel)}
    last = inner
    if expand:
        weights["expand_weight"] = normal(rng, inner, channels, *expand_kernel)
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
    problem = {"attrs": attrs, "weights": weights, "inputs": inputs, "post": post}
    if of_bytes:
        weights["values"] = tables(draw, rng, channels)
        inputs[0] = rng.integers(0, 256, inputs[0].shape).astype(np.float32)
        problem["dtypes"] = ["uint8", "float32"][: len(inputs)]
    return problem


def special() -> list[st.SearchStrategy[Problem]]:
    """Images of bytes."""
    return [problems(of_bytes=True)]
