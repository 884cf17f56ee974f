"""Winograd's routines: every tile and kernel size, and the error of each against float64 and direct routines."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import softneuro
from softneuro import _C

TILES = (2, 3, 4, 5, 6, 8)
LARGEST = 10  # positions along an axis: tile + kernel - 1
ROUTINES = [
    e["descriptor"]
    for e in softneuro.registry()
    if e["layer"] == "conv2d" and e["available"] and e["descriptor"].rpartition("/")[2].startswith("winograd")
]
BEST = ROUTINES[-1]

Array = np.ndarray[Any, Any]


class Layer:
    """A convolution on white data, with its float64 reference."""

    def __init__(self, c: int, k: int, size: tuple[int, int], kernel: tuple[int, int], batch: int = 1) -> None:
        rng = np.random.default_rng(c + k)
        self.attrs = {"padding": [kernel[0] // 2, kernel[1] // 2, kernel[0] // 2, kernel[1] // 2]}
        self.weights = {"weight": rng.standard_normal((k, c, *kernel), dtype=np.float32)}
        self.x = rng.standard_normal((batch, c, *size), dtype=np.float32)
        graph = softneuro.Graph()
        blob = graph.input("x", self.x.shape)
        graph.output(graph.add("conv2d", [blob], weights=self.weights, **self.attrs))
        self.expected = graph.reference([self.x])[0]

    def run(self, descriptor: str, threads: int = 1) -> Array:
        out: Array = _C.testing.run_routine("conv2d", self.attrs, self.weights, [self.x], descriptor, {}, threads)
        return out

    def error(self, descriptor: str, threads: int = 1) -> float:
        """Relative L2."""
        difference = np.linalg.norm(self.run(descriptor, threads) - self.expected)
        return float(difference / np.linalg.norm(self.expected))

    def expected_error(self, descriptor: str) -> float:
        value: float = _C.testing.expected_error("conv2d", self.attrs, self.weights, [self.x.shape], descriptor)
        return value

    def direct(self) -> str:
        accepted = _C.testing.accepting("conv2d", self.attrs, self.weights, [self.x.shape])
        descriptor: str = next(d for d in accepted if "/direct_" in d and d.split("/")[1] == BEST.split("/")[1])
        return descriptor


@pytest.fixture(scope="module")
def square() -> Layer:
    return Layer(64, 48, (25, 25), (3, 3))


@pytest.mark.parametrize("tile", TILES)
@pytest.mark.parametrize("routine", ROUTINES)
def test_error_is_the_expected_one(square: Layer, routine: str, tile: int) -> None:
    descriptor = f"{routine}{{tile={tile},block=14,split=0}}"
    assert 0.4 < square.error(descriptor) / square.expected_error(descriptor) < 1.6


def test_error_against_direct(square: Layer) -> None:
    """F(2, 3) and F(4, 3) within ten times the direct routine's error, F(6, 3) within a hundred times."""
    direct = square.error(square.direct())
    errors = {tile: square.error(f"{BEST}{{tile={tile},block=28,split=0}}") for tile in TILES}
    assert errors[2] <= 10 * direct
    assert errors[4] <= 10 * direct
    assert errors[6] <= 100 * direct
    assert max(errors.values()) <= 1e-4


@pytest.mark.parametrize("kernel", [2, 3, 4, 5, 6, 7])
@pytest.mark.parametrize("form", ["square", "row", "column", "rectangle"])
def test_kernel_sizes(kernel: int, form: str) -> None:
    shape = {"square": (kernel, kernel), "row": (1, kernel), "column": (kernel, 1), "rectangle": (3, kernel)}[form]
    layer = Layer(20, 37, (11, 17), shape, batch=2)
    for tile in TILES:
        if tile + max(shape) - 1 > LARGEST:
            continue
        for block, split, threads in ((1, 0, 1), (9, 1, 3), (1000, 0, 4)):
            descriptor = f"{BEST}{{tile={tile},block={block},split={split}}}"
            assert layer.error(descriptor, threads) <= 3 * layer.expected_error(descriptor) + 1e-6, descriptor


def test_maps_smaller_than_a_tile() -> None:
    for size in ((1, 1), (1, 5), (2, 3), (5, 4)):
        layer = Layer(17, 16, size, (3, 3), batch=3)
        for tile in TILES:
            descriptor = f"{BEST}{{tile={tile},block=14,split=0}}"
            assert layer.error(descriptor, 2) <= 10 * layer.expected_error(descriptor) + 1e-6, descriptor


def test_unknown_tiles_are_refused(square: Layer) -> None:
    for params in ("tile=7,block=14,split=0", "tile=1,block=14,split=0", "tile=4,block=0,split=0"):
        with pytest.raises(softneuro.Error, match=r"tile|block"):
            square.run(f"{BEST}{{{params}}}")


def test_values_near_the_largest_overflow_only_around_them(square: Layer) -> None:
    """Documented: transforms overflow before float32 does, and a tile shares its infinities; other tiles do not."""
    layer = Layer(16, 16, (24, 24), (3, 3))
    layer.x[:] = 0
    layer.x[0, 3, 1, 1] = 3e38
    layer.weights["weight"][:] = np.float32(1) / 4
    out = layer.run(f"{BEST}{{tile=6,block=14,split=0}}")
    assert np.isfinite(out[:, :, 6:, :]).all()
    assert np.isfinite(out[:, :, :, 6:]).all()
    assert not out[:, :, 6:, 6:].any()


def test_limits_exclude_it(square: Layer) -> None:
    graph = softneuro.Graph()
    blob = graph.input("x", square.x.shape)
    graph.output(graph.add("conv2d", [blob], weights=square.weights, **square.attrs))
    counts = [
        _C.tune(graph, _C.parse_options({"tune": "off", **limits}), 1).counts["candidates"]
        for limits in (
            {},
            {"max_error": "2e-5"},
            {"max_error": "1e-5"},
            {"max_error": "1e-6"},
            {"strict_nonfinite": "1"},
        )
    ]
    assert counts[0] > counts[1] > counts[2] > counts[3] == counts[4]
