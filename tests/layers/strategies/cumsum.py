"""cumsum: any axis of any rank, every type, from either end, each with itself or without."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from .moving import problem, shapes
from .whole import any_values


@st.composite
def problems(draw: st.DrawFn) -> dict[str, Any]:
    dtype, shape = draw(st.sampled_from(["float32", "int64", "int32"])), draw(shapes(least=1))
    attrs = {"axis": draw(st.integers(0, len(shape) - 1))}
    attrs |= {name: draw(st.integers(0, 1)) for name in ("exclusive", "reverse")}
    return problem(attrs, any_values(draw, dtype, shape)) | {"dtypes": [dtype]}
