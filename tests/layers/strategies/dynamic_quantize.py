"""dynamic_quantize: the grids of dynamic_linear, a scale per row or for all."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from .common import Problem, generator, normal
from .dynamic_linear import GRIDS


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    """Tensors of up to four axes, some longer than what is done at once."""
    shape = draw(st.lists(st.integers(0, 6), max_size=4) | st.sampled_from([[1, 9001], [2, 3, 5000], [700, 70]]))
    rng = generator(draw)
    least, most = draw(st.sampled_from(GRIDS))
    attrs = {"least": least, "most": most, **{name: draw(st.booleans()) for name in ("symmetric", "reciprocal")}}
    attrs["rows"] = bool(shape) and draw(st.booleans())
    if draw(st.booleans()):
        attrs["eps"] = draw(st.sampled_from([1e-5, 0.02]))
    size = draw(st.sampled_from([1.0, 1.0, 1e-30, 0.0]))
    x = normal(rng, *shape) * np.float32(size) + np.float32(draw(st.sampled_from([0, 0, 3, -3])) * size)
    return {"attrs": attrs, "weights": {}, "inputs": [np.asarray(x, np.float32)]}
