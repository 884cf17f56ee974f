"""pool2d: windows of real nets and any others, with padding, dilation and both roundings."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from .moving import BATCH, CHANNELS, problem, values

#: kernel, stride, padding on each side
USUAL = st.sampled_from([(3, 2, 1), (2, 2, 0), (3, 1, 1), (3, 2, 0), (5, 1, 2), (7, 1, 0)])


@st.composite
def problems(draw: st.DrawFn) -> dict[str, Any]:
    function = draw(st.sampled_from(["max", "avg"]))
    if draw(st.booleans()):
        k, s, p = draw(USUAL)
        kernel, stride, dilation, padding = [k, k], [s, s], [1, 1], [p, p, p, p]
    else:
        kernel = [draw(st.integers(1, 6)) for _ in range(2)]
        stride = [draw(st.integers(1, 4)) for _ in range(2)]
        dilation = [draw(st.integers(1, 3)) if function == "max" else 1 for _ in range(2)]
        extent = [d * (k - 1) + 1 for k, d in zip(kernel, dilation, strict=True)]
        padding = [draw(st.integers(0, extent[i % 2] - 1)) for i in range(4)]
    least = [
        max(1, d * (k - 1) + 1 - padding[i] - padding[i + 2])
        for i, (k, d) in enumerate(zip(kernel, dilation, strict=True))
    ]
    spread = draw(st.sampled_from([4, 20, 60]))
    height, width = (size + draw(st.integers(0, spread)) for size in least)
    channels = draw(CHANNELS) if spread < 60 else draw(st.integers(1, 20))
    attrs = {
        "function": function,
        "kernel": kernel,
        "stride": stride,
        "padding": padding,
        "dilation": dilation,
        "ceil_mode": draw(st.integers(0, 1)),
        "count_include_pad": draw(st.integers(0, 1)),
    }
    return problem(attrs, values(draw, draw(BATCH), channels, height, width))


@st.composite
def of_padding(draw: st.DrawFn) -> dict[str, Any]:
    """Maxima of nothing: the taps of some windows are all beside the image."""
    width = draw(st.integers(1, 2))
    attrs = {"function": "max", "kernel": [1, 5], "stride": [1, 1], "padding": [0, 10, 0, 3], "dilation": [1, 3]}
    return problem(attrs, values(draw, draw(BATCH), draw(CHANNELS), 2, width))


def special() -> list[st.SearchStrategy[dict[str, Any]]]:
    """What random problems seldom are."""
    return [of_padding()]
