"""Images without rows or columns, all of them padding: strips and tiles of other routines would have no size."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import softneuro
from softneuro import _C

RNG = np.random.default_rng(0)
DENSE = RNG.standard_normal((16, 16, 3, 3), dtype=np.float32)
PRUNED = np.where(RNG.random(DENSE.shape) < 0.95, np.float32(0), DENSE)
SIZES = [(0, 5), (5, 0), (0, 0)]


@pytest.mark.parametrize(
    ("layer", "size", "weight"),
    [
        *itertools.product(["conv2d"], SIZES, [DENSE, PRUNED]),
        *itertools.product(["conv1d"], [(0,)], [DENSE[..., 0], PRUNED[..., 0]]),
    ],
)
def test_naive_routines_alone_compute_them(layer: str, size: tuple[int, ...], weight: np.ndarray) -> None:
    x = np.zeros((1, 16, *size), np.float32)
    attrs, weights = {"padding": [3] * (2 * len(size))}, {"weight": weight, "bias": np.arange(16, dtype=np.float32)}
    naive = {entry["descriptor"] for entry in softneuro.registry() if entry["fallback"]}
    accepted = _C.testing.accepting(layer, attrs, weights, [x.shape], {}, 2)
    assert accepted
    assert set(accepted) <= naive
    for descriptor in accepted:
        result = _C.testing.run_routine(layer, attrs, weights, [x], descriptor, {}, 2)
        assert (np.moveaxis(result, 1, -1) == weights["bias"]).all()
