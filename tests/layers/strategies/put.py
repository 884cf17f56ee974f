"""put: rows at places of any axis, some of them twice, of values of any kind, by either type of indices."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from .moving import problem, shapes
from .whole import WHOLE, any_values


@st.composite
def problems(draw: st.DrawFn) -> dict[str, Any]:
    kind, shape = draw(st.sampled_from(["float32", "float16", "bfloat16", *WHOLE])), draw(shapes(least=1, most=4))
    ids_dtype, from_end = draw(st.sampled_from(["int64", "int32"])), draw(st.booleans())
    axis = draw(st.integers(0, len(shape) - 1))
    shape = tuple(max(size, 1) if i == axis else size for i, size in enumerate(shape))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    count = draw(st.sampled_from([0, 1, 1, 2, 5, shape[axis]]))
    ids = rng.integers(-shape[axis] if from_end else 0, shape[axis], count).astype(np.float32)
    rows = tuple(count if i == axis else size for i, size in enumerate(shape))
    dtype = kind if kind in WHOLE else "float32"
    blobs = [any_values(draw, dtype, own) for own in (shape, rows)]
    attrs: dict[str, Any] = {"axis": axis, "from_end": int(from_end)}
    if kind not in WHOLE:
        attrs["storage"] = kind
        blobs = [np.round(8 * x) for x in blobs]  # of which halves have all digits
    return problem(attrs, *blobs, ids) | {"dtypes": [dtype, dtype, ids_dtype]}
