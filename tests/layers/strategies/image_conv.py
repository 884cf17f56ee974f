"""image_conv: conv2d's problems with few channels, of images of bytes; tables of pipelines and any others."""

import numpy as np
from hypothesis import strategies as st

from . import conv2d
from .common import Problem, generator


def tables(draw: st.DrawFn, rng: np.random.Generator, channels: int) -> np.ndarray:
    """What becomes of each byte: lines, as pipelines have them, at times with one channel of anything."""
    table = np.arange(256.0) * rng.uniform(0.001, 0.03, (channels, 1)) + rng.standard_normal((channels, 1))
    if draw(st.integers(0, 2)) == 0:
        table[draw(st.integers(0, channels - 1))] = rng.standard_normal(256)
    return table.astype(np.float32)


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    """Without a residual, which there is none of."""
    problem = draw(conv2d.problems(first=draw(st.booleans())))
    weights = {f"conv_{role}": weight for role, weight in problem["weights"].items()}
    weights["conv_weight"] = weights["conv_weight"][:, :4]
    batch, _, height, width = problem["inputs"][0].shape
    channels = weights["conv_weight"].shape[1]
    rng = generator(draw)
    weights["values"] = tables(draw, rng, channels)
    image = rng.integers(0, 256, (batch, channels, height, width)).astype(np.float32)
    post = {name: value for name, value in problem["post"].items() if name != "residual"}
    attrs = {**problem["attrs"], "groups": 1}
    return {"attrs": attrs, "weights": weights, "inputs": [image], "post": post, "dtypes": ["uint8"]}
