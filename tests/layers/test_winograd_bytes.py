"""Winograd's method on quantized blobs: the errors of its sums, and of results that are brought to steps."""

from __future__ import annotations

import numpy as np
import pytest

import softneuro
from softneuro.error_measure import relative_error
from tests.layers.quantized_conv import QuantizedConv, routines

TILES = (2, 3, 4, 5, 6, 7, 8)
ROUTINES = routines("winograd_bytes")


@pytest.fixture(scope="module")
def layer() -> QuantizedConv:
    return QuantizedConv(72, 44, (25, 27))


def tuned(routine: str, tile: int, block: int = 14, *, split: int = 0, passing: int = 0) -> str:
    return f"{routine}{{tile={tile},block={block},split={split},passing={passing}}}"


@pytest.mark.parametrize("passing", [0, 1])
@pytest.mark.parametrize("tile", TILES)
@pytest.mark.parametrize("routine", [r for r in ROUTINES if "->cpu:float32" in r])
def test_error_is_at_most_the_expected_one(layer: QuantizedConv, routine: str, tile: int, passing: int) -> None:
    descriptor = tuned(routine, tile, passing=passing)
    error = relative_error(layer.run(descriptor, {}), layer.expected)
    assert error < 1.6 * layer.expected_error(descriptor) + 1e-7


@pytest.mark.parametrize("tile", TILES)
@pytest.mark.parametrize("routine", [r for r in ROUTINES if "->" not in r])
def test_steps_differ_near_ties_alone(layer: QuantizedConv, routine: str, tile: int) -> None:
    spread = float(np.abs(layer.expected).max())
    post = {"activation": "relu", "quantize": {"scale": spread / 255, "zero_point": 0}}
    taken = layer.run(tuned(routine, tile), post, 3) / np.float32(spread / 255)
    exact = np.clip(layer.expected / (spread / 255), 0, 255)
    # The largest of many errors is some times what is usual.
    noise = 20 * layer.expected_error(tuned(routine, tile)) * float(np.sqrt(np.mean(exact**2)))
    assert np.abs(taken - exact).max() <= 0.5 + noise + 1e-4
    assert np.mean(np.abs(taken - np.rint(exact)) > 0.1) <= 2 * noise + 1e-4


@pytest.mark.parametrize("routine", [r for r in ROUTINES if "->cpu:float32" in r])
def test_what_is_outside_of_the_image_is_zero(routine: str) -> None:
    """Whatever the zero point; with strides, groups, and channels that are no whole block."""
    for zero in (0, 3, 255):
        for c, k, groups, stride in ((5, 3, 1, 1), (17, 33, 1, 1), (33, 20, 1, 2), (32, 64, 2, 1)):
            one = QuantizedConv(c, k, (6, 11), stride=stride, groups=groups, zero=zero)
            for tile in (2, 4, 6):
                descriptor = tuned(routine, tile, 3, split=1)
                error = relative_error(one.run(descriptor, {}, 3), one.expected)
                assert error < 4 * one.expected_error(descriptor) + 1e-6, descriptor


def test_unknown_params_are_refused(layer: QuantizedConv) -> None:
    for tile, block, passing in ((9, 14, 0), (1, 14, 1), (4, 0, 0), (4, 14, 2)):
        with pytest.raises(softneuro.Error, match=r"tile|block|passing"):
            layer.run(tuned(ROUTINES[-1], tile, block, passing=passing), {})
