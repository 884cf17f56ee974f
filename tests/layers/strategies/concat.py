"""concat: any axis of any rank; whole channel blocks now and then; one to four inputs."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from .moving import of_whole, problem, shapes, values


@st.composite
def problems(draw: st.DrawFn) -> dict[str, Any]:
    shape = list(draw(shapes(least=1)))
    axis = draw(st.integers(0, min(len(shape) - 1, draw(st.integers(1, 7)))))
    sizes = st.sampled_from([16, 32, 48]) if draw(st.booleans()) else st.integers(0, 20)
    inputs = []
    for _ in range(draw(st.integers(1, 4))):
        shape[axis] = draw(sizes)
        inputs.append(values(draw, *shape))
    return problem({"axis": axis}, *inputs)


def special() -> list[st.SearchStrategy[dict[str, Any]]]:
    """Integers and booleans, which are moved row-major alone."""
    return of_whole(problems())
