"""winograd_encode: every tile and kernel size, borders on all sides, one-dimensional kernels, batches."""

from hypothesis import strategies as st

from .common import Problem, generator, normal

SIZES = [(t, k) for t in range(2, 9) for k in range(2, 8) if t + k <= 11]  # that there are transforms for


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    """Images of at least a kernel."""
    (tile_h, kernel_h), (tile_w, kernel_w) = (draw(st.sampled_from([*SIZES, (6, 3), (4, 3), (1, 1)])) for _ in "hw")
    padding = [draw(st.integers(0, 3)) for _ in range(4)]
    h = draw(st.integers(max(1, kernel_h - padding[0] - padding[2]), 20))
    w = draw(st.integers(max(1, kernel_w - padding[1] - padding[3]), 20))
    channels = draw(st.sampled_from([4, 8, 16, 32, 48, 5]))
    rng = generator(draw)
    attrs = {"kernel": [kernel_h, kernel_w], "tile": [tile_h, tile_w], "padding": padding}
    return {"attrs": attrs, "weights": {}, "inputs": [normal(rng, draw(st.integers(1, 3)), channels, h, w)]}
