"""logical: every function, every way of broadcasting."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from .moving import problem
from .whole import pair


@st.composite
def problems(draw: st.DrawFn) -> dict[str, Any]:
    inputs, dtypes = pair(draw, "bool")
    function = draw(st.sampled_from(["and", "or", "xor", "not"]))
    count = 1 if function == "not" else 2
    return problem({"function": function}, *inputs[:count]) | {"dtypes": dtypes[:count]}
