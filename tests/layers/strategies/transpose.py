"""transpose: any permutation of any rank, those of channels-last images more often."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from .moving import problem, shapes, values


@st.composite
def problems(draw: st.DrawFn) -> dict[str, Any]:
    shape = draw(shapes())
    axes = list(range(len(shape)))
    perm = draw(st.permutations(axes))
    if len(shape) >= 3:
        perm = draw(st.sampled_from([perm, [0, *axes[2:], 1], [0, axes[-1], *axes[1:-1]]]))
    return problem({"perm": perm}, values(draw, *shape))
