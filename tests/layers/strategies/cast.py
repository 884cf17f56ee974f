"""cast: integers and booleans of any shape to reals; these, and reals, to integers and booleans."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from .moving import problem, shapes

RANGES = {
    "uint8": (0, 255),
    "int8": (-128, 127),
    "bool": (0, 1),
    "int32": (-(2**24), 2**24),
    "int64": (-(2**24), 2**24),
}


def number(draw: st.DrawFn, dtype: str) -> Any:
    """Values of a type; reals with fractions."""
    least, most = RANGES.get(dtype, (-1000, 1000))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    values = rng.integers(least, most + 1, draw(shapes())).astype(np.float32)
    return values * np.float32(0.37) if dtype == "float32" else values


@st.composite
def problems(draw: st.DrawFn) -> dict[str, Any]:
    dtype = draw(st.sampled_from(sorted(RANGES)))
    return problem({}, number(draw, dtype)) | {"dtypes": [dtype]}


@st.composite
def to_whole(draw: st.DrawFn, dtype: str) -> dict[str, Any]:
    to = draw(st.sampled_from([name for name in ("int64", "int32", "bool") if name != dtype]))
    return problem({"to": to}, number(draw, dtype)) | {"dtypes": [dtype]}


def special() -> list[st.SearchStrategy[dict[str, Any]]]:
    """Of each type to integers and booleans."""
    return [to_whole(dtype) for dtype in (*RANGES, "float32")]
