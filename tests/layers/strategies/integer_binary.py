"""integer_binary: every function on either type, every way of broadcasting."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from .moving import problem
from .whole import pair


@st.composite
def problems(draw: st.DrawFn) -> dict[str, Any]:
    inputs, dtypes = pair(draw, "int64", "int32")
    function = draw(st.sampled_from(["add", "sub", "mul", "min", "max"]))
    return problem({"function": function}, *inputs) | {"dtypes": dtypes}
