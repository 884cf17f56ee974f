"""pad: every mode, any rank; image borders more often."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from .moving import problem, shapes, values


@st.composite
def problems(draw: st.DrawFn) -> dict[str, Any]:
    mode = draw(st.sampled_from(["constant", "reflect", "replicate", "wrap"]))
    shape = draw(shapes(least=1, most=5))
    spatial = draw(st.booleans())
    before, after = [], []
    for axis, size in enumerate(shape):
        if mode in ("constant", "wrap"):
            low, high = -size, 4 if mode == "constant" else 2 * size
        else:
            low, high = 0, min(4, max(size - 1, 0)) if mode == "reflect" else 4 if size else 0
        if (spatial and axis < 2) or draw(st.integers(0, 3)) == 0:
            low = high = 0
        before.append(draw(st.integers(low, high)))
        after.append(draw(st.integers(max(low, -size - before[-1]), high)))
    attrs: dict[str, Any] = {"mode": mode, "pads": [*before, *after]}
    if mode == "constant":
        attrs["value"] = draw(st.sampled_from([0.0, 0.0, 1.5, float("-inf")]))
    return problem(attrs, values(draw, *shape))
