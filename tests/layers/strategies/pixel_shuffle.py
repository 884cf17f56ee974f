"""pixel_shuffle: factors from one to four."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from .moving import BATCH, problem, values


@st.composite
def problems(draw: st.DrawFn) -> dict[str, Any]:
    factor = draw(st.integers(1, 4))
    channels = draw(st.integers(0, 18)) * factor * factor
    x = values(draw, draw(BATCH), channels, draw(st.integers(1, 20)), draw(st.integers(1, 40)))
    return problem({"factor": factor}, x)
