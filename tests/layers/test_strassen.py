"""Strassen's product in linear layers and 1x1 convolutions: any sizes, and the error of each level of recursion."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import softneuro
from softneuro import _C
from softneuro.error_measure import relative_error

ROUTINES = [
    e["descriptor"]
    for e in softneuro.registry()
    if e["available"] and e["layer"] in {"linear", "conv2d"} and "/strassen_" in e["descriptor"]
]
Array = np.ndarray[Any, Any]


def product(descriptor: str, m: int, n: int, k: int, tuning: str, threads: int = 1, post: bool = False) -> float:
    """Relative L2 error of the routine against float64, on white data."""
    rng = np.random.default_rng(m + n + k)
    layer = descriptor.split("/", maxsplit=1)[0]
    weight = rng.standard_normal((n, k), dtype=np.float32)
    x = rng.standard_normal((m, k), dtype=np.float32)
    weights = {"weight": weight, "bias": rng.standard_normal(n, dtype=np.float32)}
    expected = x.astype(np.float64) @ weight.T.astype(np.float64) + weights["bias"]
    inputs = [x]
    if layer == "conv2d":
        weights["weight"] = weight.reshape(n, k, 1, 1)
        inputs = [np.ascontiguousarray(x.T).reshape(1, k, 1, m)]
    options = {}
    if post:
        residual = rng.standard_normal((m, n), dtype=np.float32)
        expected = np.maximum(expected + residual, 0)
        inputs.append(np.ascontiguousarray(residual.T).reshape(1, n, 1, m) if layer == "conv2d" else residual)
        options = {"activation": "relu", "residual": 1}
    out: Array = _C.testing.run_routine(layer, {}, weights, inputs, f"{descriptor}{{{tuning}}}", options, threads)
    if layer == "conv2d":
        out = out.reshape(n, m).T
    return relative_error(out, expected)


@pytest.mark.parametrize("descriptor", ROUTINES)
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_sizes_that_do_not_divide(descriptor: str, depth: int) -> None:
    bound = 3e-6 * 2.5**depth
    for m, n, k in [(96, 64, 80), (97, 65, 81), (111, 70, 95), (64, 127, 66), (9, 300, 200), (250, 33, 35)]:
        for threads in (1, 3):
            assert product(descriptor, m, n, k, f"depth={depth},panel=2", threads, post=m == 97) <= bound, (m, n, k)


@pytest.mark.parametrize("descriptor", ROUTINES)
def test_several_strips(descriptor: str) -> None:
    assert product(descriptor, 1030, 40, 48, "depth=1,panel=3", 2) <= 3e-6
    assert product(descriptor, 1030, 40, 48, "depth=2,panel=1", 2) <= 6e-6


def test_error_of_a_level() -> None:
    """What is expected is what comes, within a factor of two."""
    descriptor = ROUTINES[0]
    weight = np.zeros((768, 768), np.float32)
    for depth in (1, 2, 3):
        tuning = f"depth={depth},panel=2"
        foretold = _C.testing.expected_error(
            "linear", {}, {"weight": weight}, [(768, 768)], f"{linear(descriptor)}{{{tuning}}}"
        )
        assert 0.5 < product(linear(descriptor), 768, 768, 768, tuning) / foretold < 2


def linear(descriptor: str) -> str:
    """The linear layer's routine of a level."""
    isa = descriptor.rpartition("_")[2]
    return next(d for d in ROUTINES if d.startswith("linear/") and d.endswith(isa))
