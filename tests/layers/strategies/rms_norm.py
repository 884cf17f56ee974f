"""rms_norm: the mean square of one to all axes, weight optional."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from . import layer_norm


@st.composite
def problems(draw: st.DrawFn) -> dict[str, Any]:
    problem = draw(layer_norm.problems())
    problem["weights"].pop("bias", None)
    return problem
