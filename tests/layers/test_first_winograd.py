"""The first layer by Winograd's method along rows: every kernel width and stride, and its error against float64."""

from __future__ import annotations

import numpy as np
import pytest

import softneuro
from softneuro import _C
from softneuro.error_measure import relative_error

ROUTINES = [
    e["descriptor"]
    for e in softneuro.registry()
    if e["available"] and e["layer"] == "conv2d" and "/first_winograd" in e["descriptor"]
]


@pytest.mark.parametrize("width", [1, 4, 37, 150])
@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("kernel", [3, 5, 7])
@pytest.mark.parametrize("routine", ROUTINES)
def test_error_is_the_expected_one(routine: str, kernel: int, stride: int, width: int) -> None:
    rng = np.random.default_rng(kernel)
    pad = kernel // 2
    attrs = {"stride": [stride, stride], "padding": [pad, pad, pad, pad]}
    weights = {"weight": rng.standard_normal((40, 3, kernel, kernel), dtype=np.float32)}
    weights["bias"] = rng.standard_normal(40, dtype=np.float32)
    x = rng.standard_normal((2, 3, 21, width), dtype=np.float32)
    accepted = [d.split("{")[0] for d in _C.testing.accepting("conv2d", attrs, weights, [x.shape])]
    if routine not in accepted:
        # Thirteen sums do not fit in sixteen registers.
        assert (kernel, stride) == (7, 2)
        assert not routine.endswith(("avx512", "neon"))
        return
    graph = softneuro.Graph()
    graph.output(graph.add("conv2d", [graph.input("x", x.shape)], weights=weights, **attrs))
    expected = graph.reference([x])[0]
    for rows, threads in ((1, 1), (5, 3), (100, 2)):
        descriptor = f"{routine}{{rows={rows}}}"
        actual = _C.testing.run_routine("conv2d", attrs, weights, [x], descriptor, {}, threads)
        error = relative_error(actual, expected)
        bound = _C.testing.expected_error("conv2d", attrs, weights, [x.shape], descriptor)
        # Sums in any order have an error of their own, of some 1e-7.
        assert 0.3 * bound - 1e-7 < error < 1.6 * bound + 2e-7


def test_nan_stays_in_its_tile() -> None:
    """Outputs further away than a tile reaches are as without it."""
    rng = np.random.default_rng(1)
    attrs = {"padding": [1, 1, 1, 1]}
    weights = {"weight": rng.standard_normal((16, 3, 3, 3), dtype=np.float32)}
    x = rng.standard_normal((1, 3, 9, 40), dtype=np.float32)
    spoilt = x.copy()
    spoilt[0, 1, 4, 20] = np.nan
    clean, result = (
        _C.testing.run_routine("conv2d", attrs, weights, [image], f"{ROUTINES[-1]}{{rows=4}}", {}, 1)
        for image in (x, spoilt)
    )
    assert np.isnan(result[0, :, 3:6, 19:22]).all()
    touched = np.isnan(result).any(axis=(0, 1))
    for rest in (touched[:3], touched[6:], touched[:, :15], touched[:, 26:]):
        assert not rest.any()
    assert np.array_equal(result[:, :, ~touched], clean[:, :, ~touched])
