"""expand: axes of size one repeated and new ones in front, of values of any kind."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from .moving import problem, shapes
from .whole import WHOLE, any_values


@st.composite
def problems(draw: st.DrawFn) -> dict[str, Any]:
    dtype, shape = draw(st.sampled_from(["float32", *WHOLE])), draw(shapes(most=4))
    own = [1 if draw(st.booleans()) else size for size in shape]
    front = draw(st.lists(st.integers(1, 4), max_size=2))
    cut = draw(st.integers(0, len(own))) if all(size == 1 for size in own) else 0
    return problem({"shape": [*front, *shape]}, any_values(draw, dtype, tuple(own[cut:]))) | {"dtypes": [dtype]}
