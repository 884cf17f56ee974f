"""winograd_decode: every tile and kernel size, tiles that reach past the output, batches, post-ops."""

from hypothesis import strategies as st

from .common import Problem, generator, normal, with_post_ops
from .winograd_encode import SIZES


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    """Outputs of up to 20 x 20."""
    (tile_h, kernel_h), (tile_w, kernel_w) = (draw(st.sampled_from([*SIZES, (6, 3), (4, 3), (1, 1)])) for _ in "hw")
    h, w, images = draw(st.integers(1, 20)), draw(st.integers(1, 20)), draw(st.integers(1, 3))
    channels = draw(st.sampled_from([4, 8, 16, 32, 48, 5]))
    rng = generator(draw)
    positions = (tile_h + kernel_h - 1) * (tile_w + kernel_w - 1)
    tiles = images * -(-h // tile_h) * -(-w // tile_w)
    attrs = {"kernel": [kernel_h, kernel_w], "tile": [tile_h, tile_w], "output_size": [h, w]}
    weights = {"bias": normal(rng, channels)} if draw(st.booleans()) else {}
    inputs, post = with_post_ops(draw, rng, [normal(rng, positions, tiles, channels)], (images, channels, h, w))
    return {"attrs": attrs, "weights": weights, "inputs": inputs, "post": post}
