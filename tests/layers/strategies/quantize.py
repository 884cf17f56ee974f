"""quantize: of any shape; values beyond the range, ties, NaN."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from .moving import problem, shapes, values


@st.composite
def problems(draw: st.DrawFn) -> dict[str, Any]:
    x = values(draw, *draw(shapes()))
    scale = np.float32(draw(st.sampled_from([0.01, 0.16, 0.38, 0.5, 1e-3])))
    if draw(st.booleans()):  # ties
        x = (np.rint(x * 4) / 2 * scale).astype(np.float32)
    if x.size:
        x.flat[0] = draw(st.sampled_from([np.nan, np.inf, -np.inf, 1e30, 0]))
    least, most = draw(st.sampled_from([(0, 255), (-128, 127), (0, 127)]))
    zero_point = draw(st.sampled_from([0, 7, most, least]))
    q = {"scale": float(scale), "zero_point": zero_point, "least": least, "most": most}
    return {**problem({}, x), "post": {"quantize": {**q, "reciprocal": draw(st.booleans())}}}
