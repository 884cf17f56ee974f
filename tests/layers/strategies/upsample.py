"""upsample: both modes, shrinking and enlarging, by sizes, by explicit scales and by given neighbours."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from .common import generator
from .moving import images, problem


def taps(rng: np.random.Generator, size: int, outputs: int, mode: str) -> np.ndarray:
    """Any two neighbours for each output of an axis, now and then none."""
    rows = np.concatenate([rng.integers(0, size, (outputs, 2)), rng.random((outputs, 2))], 1)
    if mode == "nearest":
        rows[:, 1:] = np.stack([rows[:, 0], np.ones(outputs), np.zeros(outputs)], 1)
    else:
        rows[rng.random(outputs) < 0.1] = [-1, -1, 0, 0]
    return rows.astype(np.float32)


@st.composite
def problems(draw: st.DrawFn) -> dict[str, Any]:
    x = draw(images(most=14))
    mode = draw(st.sampled_from(["nearest", "bilinear"]))
    attrs: dict[str, Any] = {"mode": mode}
    if mode == "bilinear":
        attrs["align_corners"] = draw(st.integers(0, 1))
        attrs["shares_first"] = draw(st.integers(0, 1))
    kind = draw(st.sampled_from(["double", "any", "scale", "taps"]))
    weights = {}
    if kind == "double":
        attrs["output_size"] = [2 * size for size in x.shape[2:]]
    elif kind == "taps":
        attrs["output_size"] = [draw(st.integers(1, 33)) for _ in range(2)]
        attrs["outside"] = draw(st.sampled_from([0.0, -2.5]))
        rng = generator(draw)
        for role, size, outputs in zip(("rows", "columns"), x.shape[2:], attrs["output_size"], strict=True):
            weights[role] = taps(rng, size, outputs, mode)
    elif kind == "any":
        attrs["output_size"] = [draw(st.integers(1, 33)) for _ in range(2)]
    else:
        scales = [draw(st.floats(0.3, 3.5)) for _ in range(2)]
        attrs["output_size"] = [max(1, int(size * scale)) for size, scale in zip(x.shape[2:], scales, strict=True)]
        attrs["scale_h"], attrs["scale_w"] = scales
    return problem(attrs, x, **weights)
