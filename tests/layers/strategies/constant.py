"""constant: a value of any shape."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from .moving import problem, shapes, values


@st.composite
def problems(draw: st.DrawFn) -> dict[str, Any]:
    return problem({}, value=values(draw, *draw(shapes())))
