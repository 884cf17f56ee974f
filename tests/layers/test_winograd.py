"""Winograd's routines: every tile and kernel size, and the error of each against float64 and direct routines."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import softneuro
from softneuro import _C
from softneuro.error_measure import relative_error

TILES = (2, 3, 4, 5, 6, 7, 8)
LARGEST = {1: 10, 2: 13}  # positions along an axis of a stride: (tile - 1) * stride + kernel
CASES = [(tile, stride) for stride in (1, 2) for tile in TILES if tile < 7 or stride == 1]  # of a 3x3 kernel
ROUTINES = [
    e["descriptor"]
    for e in softneuro.registry()
    if e["layer"] == "conv2d" and e["available"] and e["descriptor"].endswith(f"/winograd_{e['isa']}")
]
BEST = ROUTINES[-1]
ADDS = [routine.replace("/winograd_", "/winograd_adds_") for routine in ROUTINES]  # additions for multiplications
WEIGHTS = [(0, 1), (1, 1), (1, 0)]  # passing, packed: transformed ahead, or in passing from packed taps or the model's


def tuned(routine: str, tile: int, block: int, *, split: int = 0, passing: int = 0, packed: int = 1) -> str:
    return f"{routine}{{tile={tile},block={block},split={split},passing={passing},packed={packed}}}"


Array = np.ndarray[Any, Any]


class Layer:
    """A convolution on white data, with its float64 reference."""

    def __init__(
        self,
        c: int,
        k: int,
        size: tuple[int, int],
        kernel: tuple[int, int],
        batch: int = 1,
        stride: tuple[int, int] = (1, 1),
        groups: int = 1,
    ) -> None:
        rng = np.random.default_rng(c + k)
        padding = [kernel[0] // 2, kernel[1] // 2, kernel[0] // 2, kernel[1] // 2]
        self.attrs = {"padding": padding, "stride": list(stride), "groups": groups}
        self.weights = {"weight": rng.standard_normal((k, c // groups, *kernel), dtype=np.float32)}
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
        return relative_error(self.run(descriptor, threads), self.expected)

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


@pytest.fixture(scope="module")
def strided() -> Layer:
    return Layer(64, 48, (49, 50), (3, 3), stride=(2, 2))


@pytest.mark.parametrize(("passing", "packed"), WEIGHTS)
@pytest.mark.parametrize(("tile", "stride"), CASES)
@pytest.mark.parametrize("routine", ROUTINES)
def test_error_is_the_expected_one(
    square: Layer, strided: Layer, routine: str, tile: int, stride: int, passing: int, packed: int
) -> None:
    layer = square if stride == 1 else strided
    descriptor = tuned(routine, tile, 14, passing=passing, packed=packed)
    assert 0.4 < layer.error(descriptor) / layer.expected_error(descriptor) < 1.6


@pytest.mark.parametrize(("tile", "stride"), CASES)
@pytest.mark.parametrize("routine", ADDS)
def test_additions_hardly_add_to_it(square: Layer, strided: Layer, routine: str, tile: int, stride: int) -> None:
    layer = square if stride == 1 else strided
    for block in (5, 16, 100):
        descriptor = tuned(routine, tile, block)
        assert layer.error(descriptor) < 1.6 * layer.expected_error(descriptor) + 3e-7


def test_additions_take_no_weights_in_passing(square: Layer) -> None:
    with pytest.raises(softneuro.Error, match="passing must be 0"):
        square.run(tuned(ADDS[-1], 4, 16, passing=1))


def test_error_against_direct(square: Layer) -> None:
    """F(2, 3) and F(4, 3) within ten times the direct routine's error, F(6, 3) within a hundred times."""
    direct = square.error(square.direct())
    errors = {tile: square.error(tuned(BEST, tile, 28)) for tile in TILES}
    assert errors[2] <= 10 * direct
    assert errors[4] <= 10 * direct
    assert errors[6] <= 100 * direct
    assert max(errors.values()) <= 1e-4


def test_error_against_direct_with_a_stride(strided: Layer) -> None:
    """Two taps lose fewer digits than three: up to F(4, 3) the plain sum is no more exact."""
    direct = strided.error(strided.direct())
    errors = {tile: strided.error(tuned(BEST, tile, 28)) for tile in (2, 3, 4, 5, 6)}
    assert max(errors[tile] for tile in (2, 3, 4)) <= 2 * direct
    assert max(errors.values()) <= 10 * direct


SIZES = [(kernel, (1, 1)) for kernel in (2, 3, 4, 5, 6, 7)]
STRIDED = [(kernel, stride) for kernel in (3, 5, 7) for stride in ((2, 2), (1, 2), (2, 1))]


@pytest.mark.parametrize(("kernel", "stride"), SIZES + STRIDED)
@pytest.mark.parametrize("form", ["square", "row", "column", "rectangle"])
def test_kernel_sizes(kernel: int, stride: tuple[int, int], form: str) -> None:
    shape = {"square": (kernel, kernel), "row": (1, kernel), "column": (kernel, 1), "rectangle": (3, kernel)}[form]
    layer = Layer(20, 37, (11, 17), shape, batch=2, stride=stride)
    for tile in TILES:
        if any(taps > 1 and (tile - 1) * step + taps > LARGEST[step] for taps, step in zip(shape, stride, strict=True)):
            continue
        same = form == "square" and stride[0] == stride[1]
        ways = [(1, 0, 1, 0, 1), (9, 1, 3, 0, 1), (1000, 0, 4, 0, 1)]
        ways += [(1, 0, 1, 1, 1), (9, 1, 3, 1, 0)] if same else []
        for block, split, threads, passing, packed in ways:
            descriptor = tuned(BEST, tile, block, split=split, passing=passing, packed=packed)
            assert layer.error(descriptor, threads) <= 3 * layer.expected_error(descriptor) + 1e-6, descriptor
        descriptor = tuned(ADDS[-1], tile, 9, split=1)
        assert layer.error(descriptor, 3) <= 3 * layer.expected_error(descriptor) + 1e-6, descriptor


@pytest.mark.parametrize(("tile", "stride"), CASES)
def test_maps_smaller_than_a_tile(tile: int, stride: int) -> None:
    for size in ((1, 1), (1, 5), (2, 3), (5, 4)):
        layer = Layer(17, 16, size, (3, 3), batch=3, stride=(stride, stride))
        for passing, packed in WEIGHTS:
            descriptor = tuned(BEST, tile, 14, passing=passing, packed=packed)
            assert layer.error(descriptor, 2) <= 10 * layer.expected_error(descriptor) + 1e-6, descriptor


@pytest.mark.parametrize("packed", [0, 1])
@pytest.mark.parametrize("tile", [3, 4, 5, 6, 7])
@pytest.mark.parametrize("tiles", [(1, 1), (2, 1), (1, 3), (2, 2)])
@pytest.mark.parametrize("channels", [(17, 33), (160, 16), (300, 50)])
def test_weights_in_passing_for_few_tiles(
    tiles: tuple[int, int], tile: int, channels: tuple[int, int], packed: int
) -> None:
    """One to four tiles, whole ones and others, and channels for more than one chunk of them."""
    down, across = tiles
    layer = Layer(*channels, (down * tile, across * tile - 1), (3, 3))
    for routine in ROUTINES:
        descriptor = tuned(routine, tile, 4, split=1, passing=1, packed=packed)
        assert layer.error(descriptor, 2) <= 3 * layer.expected_error(descriptor), descriptor


@pytest.mark.parametrize("packed", [0, 1])
@pytest.mark.parametrize("tile", [3, 4, 7])
def test_blocks_of_few_tiles_on_maps_of_more(tile: int, packed: int) -> None:
    """Five tiles in blocks of three and two, six in threes, one input block, and groups."""
    for channels, down, across, groups in ((20, 5, 1, 1), (9, 3, 2, 1), (64, 3, 2, 2)):
        layer = Layer(channels, 32, (down * tile - 1, across * tile), (3, 3), groups=groups)
        for routine in ROUTINES:
            descriptor = tuned(routine, tile, 4, passing=1, packed=packed)
            assert layer.error(descriptor) <= 3 * layer.expected_error(descriptor), descriptor


def test_weights_in_passing_take_the_memory_of_taps_or_none(square: Layer) -> None:
    for (passing, packed), times in zip(WEIGHTS, (4, 1, 0), strict=True):
        descriptor = tuned(BEST, 4, 14, passing=passing, packed=packed)
        foretold, actual = _C.testing.packed_bytes("conv2d", square.attrs, square.weights, [square.x.shape], descriptor)
        assert foretold == actual == times * square.weights["weight"].nbytes


def test_positions_of_a_single_tap_share_its_weights(strided: Layer) -> None:
    """F(4, 3) of stride 2 multiplies at 9 x 9 positions with 6 x 6 weights."""
    descriptor = tuned(BEST, 4, 14)
    shapes = [strided.x.shape]
    foretold, actual = _C.testing.packed_bytes("conv2d", strided.attrs, strided.weights, shapes, descriptor)
    assert foretold == actual == 4 * strided.weights["weight"].nbytes


def test_unknown_tiles_are_refused(square: Layer, strided: Layer) -> None:
    for layer, tile, block, passing, packed in (
        (square, 9, 14, 0, 1),
        (square, 1, 14, 1, 1),
        (square, 4, 0, 0, 1),
        (square, 4, 14, 2, 1),
        (square, 4, 14, 1, 2),
        (square, 4, 14, 0, 0),
        (strided, 7, 14, 1, 1),
        (strided, 1, 14, 0, 1),
    ):
        with pytest.raises(softneuro.Error, match=r"tile|block|passing|packed"):
            layer.run(tuned(BEST, tile, block, passing=passing, packed=packed))


def test_strides_without_a_transform_are_refused() -> None:
    for kernel, stride in ((2, 2), (4, 2), (3, 3)):
        layer = Layer(16, 16, (9, 9), (kernel, kernel), stride=(stride, stride))
        accepted = _C.testing.accepting("conv2d", layer.attrs, layer.weights, [layer.x.shape])
        assert not any("/winograd" in descriptor for descriptor in accepted)


def test_values_near_the_largest_overflow_only_around_them(square: Layer) -> None:
    """Documented: transforms overflow before float32 does, and a tile shares its infinities; other tiles do not."""
    layer = Layer(16, 16, (24, 24), (3, 3))
    layer.x[:] = 0
    layer.x[0, 3, 1, 1] = 3e38
    layer.weights["weight"][:] = np.float32(1) / 4
    out = layer.run(tuned(BEST, 6, 14))
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
            {"max_error": "2e-6"},
            {"max_error": "1e-6"},
            {"max_error": "1e-7"},
            {"strict_nonfinite": "1"},
        )
    ]
    assert counts[0] > counts[1] > counts[2] > counts[3] == counts[4]
