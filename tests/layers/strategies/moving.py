"""What the strategies of layers that move, pick or pool elements share."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

#: channels: below, at and past one block of every width, and several blocks
CHANNELS = st.one_of(st.integers(1, 9), st.sampled_from([0, 12, 15, 16, 17, 24, 32, 33, 48, 64, 70, 96]))
BATCH = st.sampled_from([1, 1, 1, 2, 3, 0])


def values(draw: st.DrawFn, *shape: int) -> np.ndarray:
    """White float32 values, at times with NaN and infinities among them: from a drawn seed, not worth shrinking."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    x = rng.standard_normal(shape, dtype=np.float32)
    if draw(st.integers(0, 4)) == 0:
        odd = rng.random(shape)
        x[odd < 0.02] = np.nan
        x[(odd > 0.02) & (odd < 0.04)] = np.inf
        x[(odd > 0.04) & (odd < 0.06)] = -np.inf
    return x


def as_whole(made: dict[str, Any], dtype: str) -> dict[str, Any]:
    """The problem with integers or truth values instead of reals."""
    numbers = [np.nan_to_num(10 * x, posinf=99, neginf=-99).round() for x in made["inputs"]]
    inputs = [(x > 0).astype(np.float32) if dtype == "bool" else x for x in numbers]
    return made | {"inputs": inputs, "dtypes": [dtype] * len(inputs)}


def of_whole(problems: st.SearchStrategy[dict[str, Any]]) -> list[st.SearchStrategy[dict[str, Any]]]:
    """The same problems of either type of integers, and of booleans."""
    return [problems.map(lambda made, dtype=dtype: as_whole(made, dtype)) for dtype in ("int64", "int32", "bool")]


def problem(attrs: dict[str, Any], *inputs: np.ndarray, **weights: np.ndarray) -> dict[str, Any]:
    """A problem without post-ops."""
    return {"attrs": attrs, "weights": weights, "inputs": list(inputs), "post": {}}


@st.composite
def shapes(draw: st.DrawFn, least: int = 0, most: int = 6) -> tuple[int, ...]:
    """Shapes of any rank, a few thousand elements at most but for a large one now and then."""
    rank = draw(st.integers(least, most))
    if rank >= 2 and draw(st.booleans()):
        spatial = draw(
            st.lists(st.integers(1, {0: 1, 1: 90, 2: 14, 3: 6}.get(rank - 2, 3)), min_size=rank - 2, max_size=rank - 2)
        )
        return (draw(BATCH), draw(CHANNELS), *spatial)
    return tuple(
        draw(
            st.lists(
                st.integers(0 if draw(st.integers(0, 9)) == 0 else 1, {1: 50, 2: 40, 3: 20}.get(rank, 6)),
                min_size=rank,
                max_size=rank,
            )
        )
    )


@st.composite
def images(draw: st.DrawFn, least: int = 1, most: int = 20) -> np.ndarray:
    """[N,C,H,W]."""
    size = st.integers(least, most)
    return values(draw, draw(BATCH), draw(CHANNELS), draw(size), draw(size))
