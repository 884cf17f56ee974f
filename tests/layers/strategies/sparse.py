"""Weights with zeros, at random or in the patterns that pruning leaves, and problems that have such weights."""

from typing import Any

import numpy as np
from hypothesis import strategies as st

from .common import Problem, generator, normal

#: indices of axis 0 by indices of axis 1
BLOCKS = [(16, 1), (4, 1), (8, 1), (1, 4), (1, 16), (16, 4)]


def repeated(mask: np.ndarray, shape: tuple[int, ...], rows: int, columns: int) -> np.ndarray:
    """A mask of blocks as one of weights of the shape."""
    return mask.repeat(rows, 0).repeat(columns, 1)[: shape[0], : shape[1]]


KINDS = ["random", "random", "rows", "uneven", "n:m", "blocks", "blocks", "inputs", "none"]


def sparse_mask(draw: st.DrawFn, rng: np.random.Generator, shape: tuple[int, ...], kinds: list[str]) -> np.ndarray:
    """Where weights of the shape, which has two axes at least, are not zero: mostly less than half."""
    density = draw(st.sampled_from([0.02, 0.1, 0.25, 0.4, 0.6]))
    kind = draw(st.sampled_from(kinds))
    mask = rng.random(shape) < density
    if kind == "rows":  # some of which are all zero
        mask[rng.random(shape[0]) < 0.3] = False
    elif kind == "uneven":
        mask = rng.random(shape) < (2 * density * rng.random(shape[0])).reshape(-1, *[1] * (len(shape) - 1))
    elif kind == "n:m":
        most = draw(st.integers(1, 2))
        order = rng.random((shape[0], -(-shape[1] // 4), 4, *shape[2:])).argsort(axis=2).argsort(axis=2)
        mask = (order < most).reshape(shape[0], -1, *shape[2:])[:, : shape[1]]
    elif kind == "blocks":
        rows, columns = draw(st.sampled_from(BLOCKS))
        blocks = (-(-shape[0] // rows), -(-shape[1] // columns), *shape[2:])
        mask = repeated(rng.random(blocks) < density, shape, rows, columns)
    elif kind == "inputs":  # channels that no output reads
        mask[:, rng.random(shape[1]) < 0.6] = False
    elif kind == "none":
        mask = np.zeros(shape, np.bool_)
    return mask


def sparse_weights(
    draw: st.DrawFn, rng: np.random.Generator, shape: tuple[int, ...], finite: bool = True, kinds: list[str] = KINDS
) -> np.ndarray:
    """White float32 weights of which most are zero, some of these -0.0; denormals and, unless finite, NaN and Inf."""
    weights = np.where(sparse_mask(draw, rng, shape, kinds), normal(rng, *shape), np.float32(0))
    if weights.size > 0 and draw(st.integers(0, 3)) == 0:
        odd = [-0.0, 1e-41, -1e-45] if finite else [-0.0, 1e-41, np.nan, np.inf, -np.inf]
        for value in draw(st.lists(st.sampled_from(odd), min_size=1, max_size=3)):
            weights.flat[rng.integers(weights.size)] = value
    return weights


@st.composite
def with_zeros(
    draw: st.DrawFn, problems: st.SearchStrategy[Problem], role: str = "weight", kinds: list[str] = KINDS
) -> Problem:
    """Problems whose weight is sparse instead, and float32; odd values only where a result of them is well defined."""
    problem = draw(problems)
    weight: Any = problem["weights"][role]
    shape = (weight[0] if isinstance(weight, tuple) else weight).shape
    # Padding's zeros times an infinite weight are NaN in some products, in others there is no such product.
    plain = problem["post"].get("activation", "relu") in ("relu", "clamp") and not any(
        problem["attrs"].get("padding", [])
    )
    problem["weights"][role] = sparse_weights(draw, generator(draw), shape, not plain, kinds)
    return problem
