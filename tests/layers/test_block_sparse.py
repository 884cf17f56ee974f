"""Weights that are zero by blocks of output channels: which are taken, what zeros mean."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import softneuro
from softneuro import _C

ROUTINES = [e for e in softneuro.registry() if e["available"] and "/block_sparse_" in e["descriptor"]]
CONVS = [e["descriptor"] for e in ROUTINES if e["layer"] == "conv2d"]
LINEARS = [e["descriptor"] for e in ROUTINES if e["layer"] == "linear"]
Array = np.ndarray[Any, Any]


def blocks(rng: np.random.Generator, shape: tuple[int, ...], rows: int, density: float) -> Array:
    """Zeros for `rows` outputs at a time."""
    kept = rng.random((-(-shape[0] // rows), *shape[1:])) < density
    return np.where(kept.repeat(rows, 0)[: shape[0]], rng.standard_normal(shape), 0).astype(np.float32)


def accepting(layer: str, weight: Array, shape: tuple[int, ...]) -> set[str]:
    return {d.split("{")[0] for d in _C.testing.accepting(layer, {}, {"weight": weight}, [shape], {}, 1)}


def test_what_has_too_few_blocks_of_zeros_is_left_to_others() -> None:
    rng = np.random.default_rng(0)
    shape = (1, 32, 6, 6)
    for weight, accepted in [
        (blocks(rng, (64, 32, 3, 3), 16, 0.5), True),
        (blocks(rng, (64, 32, 3, 3), 16, 0.8), False),
        (blocks(rng, (64, 32, 3, 3), 4, 0.1), True),  # by the fours that happen to be zero together
        (blocks(rng, (64, 32, 3, 3), 4, 0.5), False),
        (blocks(rng, (64, 32, 3, 3), 64, 0.3), True),  # input channels at a tap
    ]:
        found = accepting("conv2d", weight, shape)
        wide = [d for d in CONVS if "nchw16c" in d]
        assert all((d in found) == accepted for d in wide)


@pytest.mark.parametrize("descriptor", CONVS)
@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("attrs", [{}, {"padding": [1, 0, 2, 1], "stride": [2, 2], "dilation": [1, 2]}])
def test_zeros_meet_what_is_not_finite(descriptor: str, value: float, attrs: dict[str, Any]) -> None:
    """Every output that has it in its window is as a dense sum has it, whatever its weight; no other is."""
    rng = np.random.default_rng(0)
    kernel = (3, 2) if attrs else (1, 1)
    weight = blocks(rng, (48, 40, *kernel), 16, 0.4)
    x = rng.standard_normal((2, 40, 9, 7), dtype=np.float32)
    x[1, 33, 4, 3] = x[1, 5, 8, 6] = value
    graph = softneuro.Graph()
    graph.output(graph.add("conv2d", [graph.input("x", x.shape)], weights={"weight": weight}, **attrs))
    with np.errstate(invalid="ignore"):
        expected = graph.reference([x])[0].astype(np.float32)
    assert np.isnan(expected).any()
    assert np.isfinite(expected[1]).any()
    for band in (1, 3):
        params = f"{{band={band},split=1}}"
        actual = _C.testing.run_routine("conv2d", attrs, {"weight": weight}, [x], descriptor + params, {}, 1)
        np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("descriptor", CONVS)
def test_bands_are_at_most_the_output(descriptor: str) -> None:
    weight = {"weight": np.zeros((32, 32, 3, 3), np.float32)}
    for band in (0, 6):
        with pytest.raises(softneuro.Error, match="band must be"):
            _C.testing.run_routine(
                "conv2d",
                {},
                weight,
                [np.ones((1, 32, 7, 7), np.float32)],
                f"{descriptor}{{band={band},split=0}}",
                {},
                1,
            )


@pytest.mark.parametrize("descriptor", LINEARS)
@pytest.mark.parametrize("post", [{}, {"residual": True, "activation": "gelu"}])
def test_rows_as_pixels(descriptor: str, post: dict[str, Any]) -> None:
    """More rows than a band has, and a value that is not finite: its row is NaN wherever its weights are all zero."""
    rng = np.random.default_rng(0)
    weight = blocks(rng, (64, 77), 16, 0.3)
    x = rng.standard_normal((41, 77), dtype=np.float32)
    inputs = [x, rng.standard_normal((41, 64), dtype=np.float32)][: 1 + len(post) // 2]
    graph = softneuro.Graph()
    blobs = [graph.input(f"x{i}", each.shape) for i, each in enumerate(inputs)]
    graph.output(graph.add("linear", blobs, weights={"weight": weight}, post=post))
    for bad in (False, True):
        if bad:
            x[17, 76] = np.inf
        with np.errstate(all="ignore"):
            expected = graph.reference(inputs)[0].astype(np.float32)
        for band in (1, 28, 100):
            params = f"{{band={band},split=0}}"
            actual = _C.testing.run_routine("linear", {}, {"weight": weight}, inputs, descriptor + params, post, 3)
            np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-4)
