"""cache_update: values of any kind, any axis but the first, caches that grow, are cleared or go round, empty axes."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from .moving import problem
from .whole import WHOLE, any_values


@st.composite
def problems(draw: st.DrawFn) -> dict[str, Any]:
    dtype, size = draw(st.sampled_from(["float32", *WHOLE])), st.integers(0, 6) | st.sampled_from([40])
    shape = [draw(st.integers(1, 3)), *(draw(size) for _ in range(draw(st.integers(1, 3))))]
    axis = draw(st.integers(1, len(shape) - 1))
    added, circular = draw(st.integers(0, shape[axis] + 3)), draw(st.booleans())
    rows = shape[axis] = max(shape[axis], added) if circular else shape[axis]
    attrs: dict[str, Any] = {"axis": axis, "circular": int(circular)}
    if not circular:
        rows = attrs["size"] = max(added, rows) + draw(st.integers(0, 3))
        attrs["clear"] = int(draw(st.booleans()))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    starts = rng.integers(0, 3 * rows + 1 if circular else rows - added + 1, shape[0]).astype(np.float32)
    update = [added if i == axis else extent for i, extent in enumerate(shape)]
    inputs = (any_values(draw, dtype, tuple(one)) for one in (shape, update))
    return problem(attrs, *inputs, starts) | {"dtypes": [dtype, dtype, "int64"]}
