"""cumsum: any axis of any rank, either type."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from .moving import problem, shapes
from .whole import whole


@st.composite
def problems(draw: st.DrawFn) -> dict[str, Any]:
    dtype, shape = draw(st.sampled_from(["int64", "int32"])), draw(shapes(least=1))
    axis = draw(st.integers(0, len(shape) - 1))
    return problem({"axis": axis}, whole(draw, dtype, shape)) | {"dtypes": [dtype]}
