"""look_up: tables of any values, for bytes of any scale."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from .common import generator
from .moving import problem, shapes


@st.composite
def problems(draw: st.DrawFn) -> dict[str, Any]:
    """With the inputs' quantization, which the table goes with."""
    rng = generator(draw)
    scale, zero_point = np.float32(draw(st.sampled_from([0.01, 0.16, 0.5]))), draw(st.sampled_from([0, 7, 255]))
    points = (np.arange(256, dtype=np.float32) - zero_point) * scale
    x = rng.choice(points, draw(shapes())).astype(np.float32)
    made = problem({}, x, points=points, values=rng.standard_normal(256).astype(np.float32))
    made["dtypes"] = [{"scale": float(scale), "zero_point": zero_point, "least": 0, "most": 255}]
    made["post"] = {"quantize": {"scale": 0.02, "zero_point": 128, "least": 0, "most": 255, "reciprocal": False}}
    return made
