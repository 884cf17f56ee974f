"""adaptive_pool2d: global, dividing, overlapping and enlarging windows."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from .moving import images, problem


@st.composite
def problems(draw: st.DrawFn) -> dict[str, Any]:
    size = draw(st.one_of(st.just([1, 1]), st.lists(st.integers(0, 9), min_size=2, max_size=2)))
    return problem({"function": draw(st.sampled_from(["max", "avg"])), "output_size": size}, draw(images()))
