"""A few rows times weights without their zeros: every form of them, at its limits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import softneuro
from softneuro import _C

ROUTINES = [
    e["descriptor"]
    for e in softneuro.registry()
    if e["layer"] == "linear" and e["available"] and "/sparse_dot_" in e["descriptor"]
]
FORMS = [1, 8, 16]
Array = np.ndarray[Any, Any]


def run(descriptor: str, bits: int, weight: Array, x: Array, fetch: int = 0) -> Array:
    params = f"{{bits={bits},fetch={fetch}}}"
    out: Array = _C.testing.run_routine("linear", {}, {"weight": weight}, [x], descriptor + params, {}, 1)
    return out


def sparse(rng: np.random.Generator, shape: tuple[int, int], density: float) -> Array:
    return np.where(rng.random(shape) < density, rng.standard_normal(shape), 0).astype(np.float32)


@pytest.mark.parametrize("descriptor", ROUTINES)
@pytest.mark.parametrize("bits", FORMS)
@pytest.mark.parametrize("density", [0.001, 0.03, 0.2, 0.6])
def test_every_form_of_every_density(descriptor: str, bits: int, density: float) -> None:
    rng = np.random.default_rng(bits)
    weight, x = sparse(rng, (37, 1501), density), rng.standard_normal((1, 1501), dtype=np.float32)
    expected = x.astype(np.float64) @ weight.T.astype(np.float64)
    for fetch in (0, 1):
        np.testing.assert_allclose(run(descriptor, bits, weight, x, fetch), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("descriptor", ROUTINES)
@pytest.mark.parametrize("columns", [255, 256, 257, 65535, 65536, 65537])
def test_columns_as_far_apart_as_groups_reach(descriptor: str, columns: int) -> None:
    weight = np.zeros((5, columns + 9), np.float32)
    weight[:, [0, columns - 1, columns, columns + 8]] = [1, 2, 4, 8]
    x = np.arange(1, columns + 10, dtype=np.float32)[None]
    for bits in FORMS:
        expected = 1 + 2 * columns + 4 * (columns + 1) + 8 * (columns + 9)
        np.testing.assert_array_equal(run(descriptor, bits, weight, x), [[expected] * 5])


@pytest.mark.parametrize("descriptor", ROUTINES)
@pytest.mark.parametrize("bits", FORMS)
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_zeros_meet_what_is_not_finite(descriptor: str, bits: int, value: float) -> None:
    """Rows with a zero there are NaN; those without, of any length, have what a dense product gives them."""
    rng = np.random.default_rng(0)
    for columns in (70, 64, 48):
        weight = sparse(rng, (40, columns), 0.3)
        weight[5:9] = 1  # no zeros at all, which leaves no column to fill a group up with
        x = rng.standard_normal((3, columns), dtype=np.float32)
        x[1, columns - 1] = x[1, 3] = value
        with np.errstate(invalid="ignore"):
            expected = x.astype(np.float64) @ weight.T.astype(np.float64)
        actual = run(descriptor, bits, weight, x)
        np.testing.assert_allclose(actual[[0, 2]], expected[[0, 2]], rtol=1e-5, atol=1e-5)
        np.testing.assert_array_equal(actual[1], expected[1].astype(np.float32))
        assert np.isnan(actual[1]).any()


@pytest.mark.parametrize("descriptor", ROUTINES)
def test_zeros_take_no_memory(descriptor: str) -> None:
    """4 bytes for each weight that is not zero, and an eighth for every one."""
    weight = sparse(np.random.default_rng(0), (256, 1024), 0.25)
    count = int((weight != 0).sum())
    size, held = _C.testing.packed_bytes("linear", {}, {"weight": weight}, [(1, 1024)], descriptor + "{bits=1,fetch=0}")
    assert 4 * count + weight.size // 8 <= size <= 4 * count + weight.size // 8 + 8 * 257 + 256
    assert held >= size


@pytest.mark.parametrize(
    ("params", "message"),
    [("{bits=4,fetch=0}", "bits must be 1, 8 or 16, not 4"), ("{bits=1,fetch=2}", "fetch must be 0 or 1")],
)
def test_other_params_are_refused(params: str, message: str) -> None:
    weight = {"weight": np.zeros((32, 32), np.float32)}
    with pytest.raises(softneuro.Error, match=message):
        _C.testing.run_routine("linear", {}, weight, [np.ones((1, 32), np.float32)], ROUTINES[0] + params, {}, 1)


def test_dense_weights_are_left_to_others() -> None:
    rng = np.random.default_rng(0)
    for density, accepted in ((0.75, False), (0.6, True)):
        weights = {"weight": sparse(rng, (64, 64), density)}
        found = _C.testing.accepting("linear", {}, weights, [(1, 64)], {}, 1)
        assert any("/sparse_dot" in descriptor for descriptor in found) == accepted
