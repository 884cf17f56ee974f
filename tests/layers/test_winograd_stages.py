"""Winograd in stages: against the fused schedule and the expected error."""

from __future__ import annotations

import numpy as np
import pytest

import softneuro
from softneuro import _C

from .test_winograd import Layer

STAGES = [
    e["descriptor"]
    for e in softneuro.registry()
    if e["layer"] == "conv2d" and e["available"] and "/winograd_stages_" in e["descriptor"]
]
BEST = STAGES[-1]


@pytest.fixture(scope="module")
def square() -> Layer:
    return Layer(64, 48, (25, 25), (3, 3))


@pytest.mark.parametrize("tile", [3, 4, 5, 6])
@pytest.mark.parametrize("routine", STAGES)
def test_error_is_the_expected_one(square: Layer, routine: str, tile: int) -> None:
    descriptor = f"{routine}{{tile={tile},panel=2}}"
    assert 0.4 < square.error(descriptor) / square.expected_error(descriptor) < 1.6


@pytest.mark.parametrize("kernel", [(2, 2), (5, 5), (7, 7), (1, 7), (7, 1), (3, 5)])
def test_kernel_sizes(kernel: tuple[int, int]) -> None:
    layer = Layer(32, 48, (11, 17), kernel, batch=2)
    for tile in (3, 4):
        for panel, threads in ((1, 1), (3, 3)):
            descriptor = f"{BEST}{{tile={tile},panel={panel}}}"
            assert layer.error(descriptor, threads) <= 3 * layer.expected_error(descriptor) + 1e-6, descriptor


def test_threads_do_not_change_the_result(square: Layer) -> None:
    descriptor = f"{BEST}{{tile=6,panel=2}}"
    np.testing.assert_array_equal(square.run(descriptor, 3), square.run(descriptor, 1))


def test_unknown_params_are_refused(square: Layer) -> None:
    for params in ("tile=7,panel=2", "tile=4,panel=9"):
        with pytest.raises(softneuro.Error, match=r"tile|panel"):
            square.run(f"{BEST}{{{params}}}")


def test_channels_beside_whole_blocks_are_declined() -> None:
    layer = Layer(20, 37, (12, 12), (3, 3))
    accepted = _C.testing.accepting("conv2d", layer.attrs, layer.weights, [layer.x.shape])
    assert not [d for d in accepted if "winograd_stages" in d]


def test_matrices_larger_than_a_cache() -> None:
    """Stores go another way there; every image is the same whatever their number."""
    level = BEST.rpartition("_")[2]
    descriptor = next(
        e["descriptor"]
        for e in softneuro.registry()
        if e["layer"] == "winograd_encode" and e["descriptor"].endswith(level)
    )
    attrs = {"kernel": [3, 3], "tile": [6, 6], "padding": [1, 1, 1, 1]}
    x = np.random.default_rng(0).standard_normal((1, 16, 60, 60), dtype=np.float32)
    one = _C.testing.run_routine("winograd_encode", attrs, {}, [x], descriptor)
    many = _C.testing.run_routine("winograd_encode", attrs, {}, [np.repeat(x, 32, 0)], descriptor, {}, 2)
    np.testing.assert_array_equal(many, np.tile(one, (1, 32, 1)))
