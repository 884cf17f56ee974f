"""arg_reduce: any axis of any rank, long rows, equal values, NaN; either rule for both."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from .moving import problem, shapes
from .whole import any_values

LONG = st.sampled_from([(3, 1000), (1, 4099), (2, 40, 33), (5, 37, 3)])


@st.composite
def problems(draw: st.DrawFn) -> dict[str, Any]:
    dtype, shape = draw(st.sampled_from(["float32", "float32", "int64", "int32"])), draw(st.one_of(shapes(1, 5), LONG))
    axis = draw(st.integers(0, len(shape) - 1))
    shape = tuple(max(size, 1) if i == axis else size for i, size in enumerate(shape))
    attrs: dict[str, Any] = {"function": draw(st.sampled_from(["argmax", "argmin"])), "axis": axis}
    for name in ("keepdim", "last", "nan"):
        attrs[name] = draw(st.integers(0, 1))
    x = any_values(draw, dtype, shape)
    return problem(attrs, np.round(2 * x) if draw(st.booleans()) else x) | {"dtypes": [dtype]}
