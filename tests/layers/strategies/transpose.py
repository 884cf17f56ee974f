"""transpose: any permutation of any rank, those of channels-last images more often; of bytes, too."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from .moving import of_whole, problem, shapes, values


@st.composite
def problems(draw: st.DrawFn) -> dict[str, Any]:
    shape = draw(shapes())
    axes = list(range(len(shape)))
    perm = draw(st.permutations(axes))
    if len(shape) >= 3:
        perm = draw(st.sampled_from([perm, [0, *axes[2:], 1], [0, axes[-1], *axes[1:-1]]]))
    if draw(st.booleans()):
        rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
        return problem({"perm": perm}, rng.integers(0, 256, shape).astype(np.float32)) | {"dtypes": ["uint8"]}
    return problem({"perm": perm}, values(draw, *shape))


def special() -> list[st.SearchStrategy[dict[str, Any]]]:
    """Integers and booleans, which are moved row-major alone."""
    return of_whole(problems())
