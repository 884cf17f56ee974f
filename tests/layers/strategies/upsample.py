"""upsample: both modes, shrinking and enlarging, by sizes and by explicit scales."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from .moving import images, problem


@st.composite
def problems(draw: st.DrawFn) -> dict[str, Any]:
    x = draw(images(most=14))
    mode = draw(st.sampled_from(["nearest", "bilinear"]))
    attrs: dict[str, Any] = {"mode": mode}
    if mode == "bilinear":
        attrs["align_corners"] = draw(st.integers(0, 1))
    kind = draw(st.sampled_from(["double", "any", "scale"]))
    if kind == "double":
        attrs["output_size"] = [2 * size for size in x.shape[2:]]
    elif kind == "any":
        attrs["output_size"] = [draw(st.integers(1, 33)) for _ in range(2)]
    else:
        scales = [draw(st.floats(0.3, 3.5)) for _ in range(2)]
        attrs["output_size"] = [max(1, int(size * scale)) for size, scale in zip(x.shape[2:], scales, strict=True)]
        attrs["scale_h"], attrs["scale_w"] = scales
    return problem(attrs, x)
