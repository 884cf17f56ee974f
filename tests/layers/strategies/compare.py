"""compare: every function; reals with NaN among them, integers, booleans; every way of broadcasting."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from .moving import problem
from .whole import WHOLE, pair


@st.composite
def problems(draw: st.DrawFn) -> dict[str, Any]:
    inputs, dtypes = pair(draw, "float32", *WHOLE)
    function = draw(st.sampled_from(["eq", "ne", "lt", "le", "gt", "ge"]))
    return problem({"function": function}, *inputs) | {"dtypes": dtypes}
