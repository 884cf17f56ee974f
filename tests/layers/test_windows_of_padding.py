"""Windows that lie in padding alone."""

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
def test_images_of_nothing_else_are_for_naive_routines(layer: str, size: tuple[int, ...], weight: np.ndarray) -> None:
    """Strips and tiles of others would have no size."""
    x = np.zeros((1, 16, *size), np.float32)
    attrs, weights = {"padding": [3] * (2 * len(size))}, {"weight": weight, "bias": np.arange(16, dtype=np.float32)}
    naive = {entry["descriptor"] for entry in softneuro.registry() if entry["fallback"]}
    accepted = _C.testing.accepting(layer, attrs, weights, [x.shape], {}, 2)
    assert accepted
    assert set(accepted) <= naive
    for descriptor in accepted:
        result = _C.testing.run_routine(layer, attrs, weights, [x], descriptor, {}, 2)
        assert (np.moveaxis(result, 1, -1) == weights["bias"]).all()


@pytest.mark.parametrize("channels", [64, 5])
def test_windows_beside_an_image_of_bytes(channels: int) -> None:
    """Nothing in front of the image is read: a sanitizer sees it, and so does whoever has no memory there."""
    values = RNG.integers(-128, 128, (8, channels, 1, 1)).astype(np.int8)
    weights = {"weight": (values, {"scale": 1.0, "least": -128, "most": 127})}
    grid = {"scale": 1.0, "zero_point": 3, "least": 0, "most": 255}
    x = RNG.integers(-3, 253, (1, channels, 4, 5)).astype(np.float32)
    attrs = {"padding": [2, 3, 2, 3]}
    accepted = _C.testing.accepting("conv2d", attrs, weights, [x.shape], {}, 1, [grid])
    assert any("int8" in descriptor for descriptor in accepted)
    expected = np.zeros((1, 8, 8, 11))
    expected[:, :, 2:-2, 3:-3] = np.einsum("kc,nchw->nkhw", values[..., 0, 0].astype(np.float64), x)
    for descriptor in accepted:
        result = _C.testing.run_routine("conv2d", attrs, weights, [x], descriptor, {}, 1, [grid])
        np.testing.assert_allclose(result, expected, atol=1e-5 * np.abs(expected).max(), err_msg=descriptor)
