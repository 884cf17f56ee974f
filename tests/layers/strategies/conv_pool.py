"""conv_pool: first layers of nets, of bytes too, and others; with windows of real nets and any others; batches."""

import numpy as np
from hypothesis import strategies as st

from .common import ACTIVATIONS, Problem, generator, normal
from .conv2d import output_size
from .image_conv import tables
from .pool2d import USUAL


@st.composite
def problems(draw: st.DrawFn, of_bytes: bool = False) -> Problem:
    """Layers whose kernel and window fit."""
    first = of_bytes or draw(st.booleans())
    channels = draw(st.integers(1, 4) if first else st.integers(5, 40))
    outputs = draw(st.one_of(st.integers(1, 70), st.sampled_from([16, 32, 64])))
    kernel = draw(st.one_of(st.sampled_from([(3, 3), (5, 5), (7, 7)]), st.tuples(*[st.integers(1, 5)] * 2)))
    stride = draw(st.one_of(st.sampled_from([(1, 1), (2, 2)]), st.tuples(*[st.integers(1, 3)] * 2)))
    same = tuple((k - 1) // 2 for k in kernel)
    padding = draw(st.one_of(st.just((*same, *same)), st.just((0, 0, 0, 0)), st.tuples(*[st.integers(0, 3)] * 4)))
    if draw(st.booleans()):
        k, s, p = draw(USUAL)
        window, step, around = (k, k), (s, s), (p, p, p, p)
    else:
        window, step = draw(st.tuples(*[st.integers(1, 4)] * 2)), draw(st.tuples(*[st.integers(1, 5)] * 2))
        around = tuple(draw(st.integers(0, window[i % 2] - 1)) for i in range(4))
    sizes = []
    for axis in range(2):
        # What the window needs of the convolution, and that of the image.
        pooled = max(1, window[axis] - around[axis] - around[axis + 2])
        least = (pooled - 1) * stride[axis] + kernel[axis] - padding[axis] - padding[axis + 2]
        sizes.append(max(1, least) + draw(st.integers(0, 40)))
    batch = draw(st.sampled_from([1, 1, 1, 2, 3, 0]))
    assert all(output_size(n, padding[i], padding[i + 2], kernel[i], stride[i], 1) > 0 for i, n in enumerate(sizes))

    rng = generator(draw)
    attrs = {
        "stride": list(stride),
        "padding": list(padding),
        "pool_function": draw(st.sampled_from(["max", "avg"])),
        "pool_kernel": list(window),
        "pool_stride": list(step),
        "pool_padding": list(around),
        "pool_ceil_mode": draw(st.integers(0, 1)),
        "pool_count_include_pad": draw(st.integers(0, 1)),
    }
    for name, value in draw(st.sampled_from(ACTIVATIONS)).items():
        attrs[f"conv_{'function' if name == 'activation' else name}"] = value
    weights = {"conv_weight": normal(rng, outputs, channels, *kernel)}
    if draw(st.booleans()):
        weights["conv_bias"] = normal(rng, outputs)
    problem = {"attrs": attrs, "weights": weights, "inputs": [normal(rng, batch, channels, *sizes)], "post": {}}
    if of_bytes:
        weights["values"] = tables(draw, rng, channels)
        problem["inputs"] = [rng.integers(0, 256, (batch, channels, *sizes)).astype(np.float32)]
        problem["dtypes"] = ["uint8"]
    return problem


def special() -> list[st.SearchStrategy[Problem]]:
    """Images of bytes."""
    return [problems(of_bytes=True)]
