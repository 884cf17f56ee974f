"""gather: any axis of values of any kind by either type of indices, fewer than there are places, from the end."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from .moving import problem, shapes
from .whole import WHOLE, any_values


@st.composite
def problems(draw: st.DrawFn) -> dict[str, Any]:
    dtype, shape = draw(st.sampled_from(["float32", *WHOLE])), draw(shapes(least=1, most=5))
    ids_dtype, from_end = draw(st.sampled_from(["int64", "int32"])), draw(st.booleans())
    axis = draw(st.integers(0, len(shape) - 1))
    shape = tuple(max(size, 1) if i == axis else size for i, size in enumerate(shape))
    own = [
        draw(st.integers(0, 9)) if i == axis else draw(st.integers(0, size)) if draw(st.booleans()) else size
        for i, size in enumerate(shape)
    ]
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    ids = np.asarray(rng.integers(-shape[axis] if from_end else 0, shape[axis], own), dtype=np.float32)
    attrs = {"axis": axis, "from_end": int(from_end)}
    return problem(attrs, any_values(draw, dtype, shape), ids) | {"dtypes": [dtype, ids_dtype]}
