"""slice: any axis of any rank, whole channel blocks now and then, steps, empty slices."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from .moving import BATCH, of_whole, problem, shapes, values


@st.composite
def problems(draw: st.DrawFn) -> dict[str, Any]:
    shape = list(draw(shapes(least=1)))
    axis = draw(st.integers(0, len(shape) - 1))
    if draw(st.booleans()) and len(shape) > 1:
        axis, shape[0], shape[1] = 1, draw(BATCH), 16 * draw(st.integers(1, 4)) + draw(st.sampled_from([0, 0, 3]))
        start = 16 * draw(st.integers(0, shape[1] // 16))
        end = draw(st.sampled_from([e for e in (start + 4, start + 16, start + 21, shape[1]) if e <= shape[1]]))
    else:
        start = draw(st.integers(0, shape[axis]))
        end = draw(st.integers(start, shape[axis]))
    step = draw(st.sampled_from([1, 1, 2, 3]))
    return problem({"axis": axis, "start": start, "end": end, "step": step}, values(draw, *shape))


def special() -> list[st.SearchStrategy[dict[str, Any]]]:
    """Integers and booleans, which are moved row-major alone."""
    return of_whole(problems())
