"""conv2d_pair: two convolutions of any kernel, stride, dilation, padding and groups, one or both of them sparse."""

import numpy as np
from hypothesis import strategies as st

from .common import ACTIVATIONS, Problem, generator, normal, with_post_ops
from .conv2d import output_size
from .sparse import sparse_weights


@st.composite
def problems(draw: st.DrawFn, usual: bool = False) -> Problem:
    """Layers whose kernels fit. usual: 3x3, whose stride alone may be two."""
    kernels = (
        st.just((3, 3)) if usual else st.one_of(st.sampled_from([(1, 1), (3, 3)]), st.tuples(*[st.integers(1, 5)] * 2))
    )
    strides = st.one_of(st.just((1, 1)), st.sampled_from([(1, 1), (2, 2)]), st.tuples(*[st.integers(1, 3)] * 2))
    stages = []
    for _ in range(2):
        kernel, stride, dilation = draw(kernels), draw(strides), (1, 1)
        if not usual:
            dilation = draw(st.one_of(st.just((1, 1)), st.tuples(*[st.integers(1, 3)] * 2)))
        same = tuple(d * (k - 1) // 2 for k, d in zip(kernel, dilation, strict=True))
        padding = (*same, *same)
        if not usual:
            padding = draw(st.one_of(st.just(padding), st.just((0,) * 4), st.tuples(*[st.integers(0, 4)] * 4)))
        stages.append((kernel, stride, dilation, padding))
    sizes = []
    for axis in range(2):
        least = 1
        for kernel, stride, dilation, padding in reversed(stages):
            extent = dilation[axis] * (kernel[axis] - 1) + 1
            least = max(1, (least - 1) * stride[axis] + extent - padding[axis] - padding[axis + 2])
        sizes.append(least + draw(st.integers(0, 40)))

    channels, between, outputs, first_groups, second_groups = draw(
        st.one_of(
            st.tuples(st.integers(1, 20), st.integers(4, 40), st.integers(4, 40), st.just(1), st.just(1)),
            st.sampled_from([(3, 64, 64, 1, 1), (6, 24, 40, 3, 4), (40, 40, 20, 40, 1), (9, 60, 60, 1, 60)]),
        )
    )
    rng = generator(draw)
    weights = {
        "first_weight": normal(rng, between, channels // first_groups, *stages[0][0]),
        "second_weight": normal(rng, outputs, between // second_groups, *stages[1][0]),
    }
    which = draw(st.sampled_from([("first_weight",), ("second_weight",), ("first_weight", "second_weight")]))
    for role in which:
        weights[role] = sparse_weights(draw, rng, weights[role].shape)
    for role, count in (("first_bias", between), ("second_bias", outputs)):
        if draw(st.booleans()):
            weights[role] = normal(rng, count)
    attrs = {"first_groups": first_groups, "second_groups": second_groups}
    for role, (_, stride, dilation, padding) in zip(("first", "second"), stages, strict=True):
        attrs |= {f"{role}_stride": list(stride), f"{role}_padding": list(padding), f"{role}_dilation": list(dilation)}
    out = sizes
    for kernel, stride, dilation, padding in stages:
        out = [output_size(out[i], padding[i], padding[i + 2], kernel[i], stride[i], dilation[i]) for i in range(2)]
    batch = draw(st.sampled_from([1, 1, 1, 2, 3, 0]))
    inputs, post = with_post_ops(draw, rng, [normal(rng, batch, channels, *sizes)], (batch, outputs, *out))
    # What an infinity becomes depends on how a function is computed, but where it is a clamp.
    clean = np.isfinite(inputs[0]).all()
    activation = draw(st.sampled_from(ACTIVATIONS if clean else ACTIVATIONS[:3]))
    for name, value in activation.items():
        attrs[f"first_{'function' if name == 'activation' else name}"] = value
    return {"attrs": attrs, "weights": weights, "inputs": inputs, "post": post}


def special() -> list[st.SearchStrategy[Problem]]:
    """What random problems seldom are."""
    return [problems(usual=True)]
