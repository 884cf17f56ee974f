"""reshape: classifier heads, changes of the spatial dimensions alone, and any other."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from .moving import BATCH, CHANNELS, of_whole, problem, shapes, values


def factors(draw: st.DrawFn, count: int) -> list[int]:
    """A random factorisation, ones included."""
    dims = []
    for _ in range(draw(st.integers(0, 3))):
        dims.append(draw(st.sampled_from([d for d in range(1, count + 1) if count % d == 0])) if count else 1)
        count //= dims[-1]
    return [*dims, count]


@st.composite
def problems(draw: st.DrawFn) -> dict[str, Any]:
    kind = draw(st.sampled_from(["head", "unflatten", "spatial", "any"]))
    n, c = draw(BATCH), draw(CHANNELS)
    if kind == "head":
        return problem({"shape": [n, c]}, values(draw, n, c, *[1] * draw(st.integers(0, 3))))
    if kind == "unflatten":
        return problem({"shape": [n, c, *[1] * draw(st.integers(0, 3))]}, values(draw, n, c))
    if kind == "spatial":
        pixels = draw(st.integers(1, 60))
        return problem({"shape": [n, c, *factors(draw, pixels)]}, values(draw, n, c, *factors(draw, pixels)))
    shape = draw(shapes())
    return problem({"shape": factors(draw, int(np.prod(shape)))}, values(draw, *shape))


def special() -> list[st.SearchStrategy[dict[str, Any]]]:
    """Integers and booleans, which are moved row-major alone."""
    return of_whole(problems())
