"""What the strategies of layers on integers and booleans share."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from .binary import broadcast_pair
from .moving import values

WHOLE = ["int64", "int32", "bool"]
NumberArray = np.ndarray[Any, np.dtype[np.float32]]


def whole(draw: st.DrawFn, dtype: str, shape: tuple[int, ...], most: int = 99) -> NumberArray:
    """Integers around zero, or truth values."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    least, most = (0, 1) if dtype == "bool" else (-most, most)
    return rng.integers(least, most + 1, shape).astype(np.float32)


def any_values(draw: st.DrawFn, dtype: str, shape: tuple[int, ...]) -> NumberArray:
    """The same, and reals."""
    return values(draw, *shape) if dtype == "float32" else whole(draw, dtype, shape, 9)


def pair(draw: st.DrawFn, *dtypes: str) -> tuple[list[NumberArray], list[str]]:
    """Two operands of one type that broadcast, some of whose values are equal."""
    dtype = draw(st.sampled_from(dtypes))
    shapes = draw(broadcast_pair())
    arrays = [any_values(draw, dtype, shape) for shape in shapes]
    return [np.round(x) if dtype == "float32" else x for x in arrays], [dtype, dtype]
