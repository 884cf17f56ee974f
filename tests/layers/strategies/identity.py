"""identity: any shape."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from .moving import of_whole, problem, shapes, values


@st.composite
def problems(draw: st.DrawFn) -> dict[str, Any]:
    return problem({}, values(draw, *draw(shapes())))


def special() -> list[st.SearchStrategy[dict[str, Any]]]:
    """Integers and booleans, which are moved row-major alone."""
    return of_whole(problems())
