"""Winograd's method by products of 16 bits: the errors of its sums, and that none leaves its bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import softneuro
from softneuro.error_measure import relative_error
from tests.layers.quantized_conv import QuantizedConv, routines

TILES = [(2, 2), (2, 4), (4, 2), (4, 4)]
ROUTINES = routines("winograd_int16")
TO_FLOATS = [r for r in ROUTINES if "->cpu:float32" in r]
# B and G of each tile, row by row.
INPUTS = {
    2: [[1, 0, -1, 0], [0, 1, 1, 0], [0, -1, 1, 0], [0, 1, 0, -1]],
    4: [
        [4, 0, -5, 0, 1, 0],
        [0, -4, -4, 1, 1, 0],
        [0, 4, -4, -1, 1, 0],
        [0, -2, -1, 2, 1, 0],
        [0, 2, -1, -2, 1, 0],
        [0, 4, 0, -5, 0, 1],
    ],
}
WEIGHTS = {
    2: [[1, 0, 0], [1, 1, 1], [1, -1, 1], [0, 0, 1]],
    4: [[1, 0, 0], [1, 1, 1], [1, -1, 1], [1, 2, 4], [1, -2, 4], [0, 0, 1]],
}


def tuned(routine: str, tile: tuple[int, int], block: int = 14, split: int = 0) -> str:
    return f"{routine}{{tile_h={tile[0]},tile_w={tile[1]},block={block},split={split}}}"


@pytest.fixture(scope="module")
def layer() -> QuantizedConv:
    return QuantizedConv(200, 44, (25, 27))


@pytest.mark.parametrize("tile", TILES)
@pytest.mark.parametrize("routine", TO_FLOATS)
def test_error_is_at_most_the_expected_one(layer: QuantizedConv, routine: str, tile: tuple[int, int]) -> None:
    descriptor = tuned(routine, tile)
    error = relative_error(layer.run(descriptor, {}), layer.expected)
    assert error < 1.2 * layer.expected_error(descriptor)


@pytest.mark.parametrize("tile", TILES)
@pytest.mark.parametrize("routine", [r for r in ROUTINES if "->" not in r])
def test_steps_differ_near_ties_alone(layer: QuantizedConv, routine: str, tile: tuple[int, int]) -> None:
    # The largest of many errors is some times what is usual.
    noise = 20 * layer.expected_error(tuned(routine, tile)) * float(np.sqrt(np.mean(layer.expected**2)))
    spread = float(np.abs(layer.expected).max())
    for steps in (255, 2000):  # of these most are beyond the last byte
        scale = spread / steps
        post = {"activation": "relu", "quantize": {"scale": scale, "zero_point": 0}}
        taken = layer.run(tuned(routine, tile), post, 3) / np.float32(scale)
        assert np.abs(taken - np.clip(layer.expected / scale, 0, 255)).max() <= 0.5 + noise / scale + 1e-3


@st.composite
def problems(draw: st.DrawFn) -> tuple[QuantizedConv, str, int]:
    groups = draw(st.sampled_from([1, 1, 1, 2]))
    channels = st.integers(1, 3).map(lambda n: 32 * n) if groups == 2 else st.integers(1, 150)
    padding = [draw(st.integers(0, 2)) for _ in range(4)]
    size = (draw(st.integers(3, 14)), draw(st.integers(3, 14)))
    zero = draw(st.sampled_from([0, 3, 128, 255]))
    one = QuantizedConv(draw(channels), draw(channels), size, groups=groups, zero=zero, padding=padding)
    tile, block = draw(st.sampled_from(TILES)), draw(st.integers(1, 20))
    return one, tuned("", tile, block, draw(st.integers(0, 1))), draw(st.integers(1, 3))


@given(problems())
def test_random_shapes(problem: tuple[QuantizedConv, str, int]) -> None:
    """Whatever the zero point, what is outside of the image is zero."""
    one, params, threads = problem
    for routine in TO_FLOATS:
        error = relative_error(one.run(routine + params, {}, threads), one.expected)
        assert error < 6 * one.expected_error(routine + params) + 1e-6, routine + params


def extremes(tile: tuple[int, int], channels: int, zero: int) -> QuantizedConv:
    """For each position an output whose weights are the largest there, and inputs that make its sums largest."""
    places = [(i, j) for i in range(tile[0] + 2) for j in range(tile[1] + 2)]
    signs = np.array([np.outer(INPUTS[tile[0]][i], INPUTS[tile[1]][j]) for i, j in places])
    inputs = 255 * np.concatenate([signs > 0, signs < 0])
    taps = np.array([np.outer(WEIGHTS[tile[0]][i], WEIGHTS[tile[1]][j]) for i, j in places], np.float64)
    taps = np.rint(taps * 127 / np.abs(taps).max((1, 2), keepdims=True))
    every = (slice(None), None)
    return QuantizedConv(
        channels,
        len(places),
        (tile[0] + 2, tile[1] + 2),
        zero=zero,
        padding=(0, 0, 0, 0),
        weights=np.broadcast_to(taps[every], (len(places), channels, 3, 3)),
        inputs=np.broadcast_to(inputs[every], (len(inputs), channels, *inputs.shape[1:])),
    )


@pytest.mark.parametrize("zero", [0, 255])
@pytest.mark.parametrize("channels", [1, 63, 64, 65, 192])
@pytest.mark.parametrize("tile", TILES)
def test_no_sum_leaves_its_bits(tile: tuple[int, int], channels: int, zero: int) -> None:
    """A sum that wraps around is wrong by twice what it is. Roundings add up, too, as all channels are alike."""
    one = extremes(tile, channels, zero)
    largest = np.abs(one.expected).max((0, 2, 3))
    for routine in TO_FLOATS:
        error = np.abs(one.run(tuned(routine, tile), {}) - one.expected).max((0, 2, 3)) / largest
        assert error.max() < 0.1, (routine, int(error.argmax()))


def test_weights_of_nothing() -> None:
    zeros = np.zeros((9, 7, 3, 3))
    one = QuantizedConv(7, 9, (5, 6), weights=zeros)
    for routine in TO_FLOATS:
        for tile in TILES:
            assert np.array_equal(one.run(tuned(routine, tile), {}), one.expected.astype(np.float32))


def test_what_is_refused(layer: QuantizedConv) -> None:
    def accepts(one: QuantizedConv) -> bool:
        return any("/winograd_int16" in descriptor for descriptor in one.accepting())

    assert accepts(layer)
    assert not accepts(QuantizedConv(16, 16, (9, 9), stride=2))
    assert not accepts(QuantizedConv(6, 6, (9, 9), groups=2))
    for tile, block in (((3, 2), 14), ((2, 6), 14), ((0, 4), 14), ((4, 4), 0)):
        with pytest.raises(softneuro.Error, match=r"tile|block"):
            layer.run(tuned(ROUTINES[-1], tile, block), {})


def test_errors_are_priced(layer: QuantizedConv) -> None:
    """F(2, 3) is the default, and within the default budget; larger tiles err more."""
    errors: list[float] = [layer.expected_error(tuned(TO_FLOATS[-1], tile)) for tile in ((2, 2), (4, 2), (4, 4))]
    assert 0 < errors[0] < errors[1] < errors[2]
    assert errors[0] < 1e-4 < errors[1]
    params: dict[str, Any] = {"tile_h": 2, "tile_w": 2}
    first = next(d for d in layer.accepting() if "/winograd_int16" in d)
    assert all(f"{name}={value}" in first for name, value in params.items())
