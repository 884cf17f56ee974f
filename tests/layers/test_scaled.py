"""Weights of linear layers in 20 or 16 bits: their error, their range, where they are tried."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import softneuro
from softneuro import _C
from softneuro.error_measure import relative_error
from tests.tune.records import records

ROUTINES = [
    e["descriptor"]
    for e in softneuro.registry()
    if e["layer"] == "linear" and e["available"] and "/scaled_" in e["descriptor"]
]
Array = np.ndarray[Any, Any]


def run(descriptor: str, bits: int, weight: Array, x: Array, fetch: int = 0) -> Array:
    params = f"{{bits={bits},fetch={fetch}}}"
    out: Array = _C.testing.run_routine("linear", {}, {"weight": weight}, [x], descriptor + params, {}, 1)
    return out


def error(result: Array, weight: Array, x: Array) -> float:
    return relative_error(result, x.astype(np.float64) @ weight.T.astype(np.float64))


@pytest.mark.parametrize("descriptor", ROUTINES)
@pytest.mark.parametrize("bits", [16, 20])
@pytest.mark.parametrize("shape", [(100, 640), (33, 1001)])
def test_the_error_is_the_expected_one(descriptor: str, bits: int, shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(bits)
    weight = rng.standard_normal(shape, dtype=np.float32)
    x = rng.standard_normal((3, shape[1]), dtype=np.float32)
    expected = _C.testing.expected_error(
        "linear", {}, {"weight": weight}, [x.shape], f"{descriptor}{{bits={bits},fetch=0}}"
    )
    # Far below it would be other bits.
    assert 0.8 * expected < error(run(descriptor, bits, weight, x), weight, x) < 1.2 * expected


@pytest.mark.parametrize("descriptor", ROUTINES)
@pytest.mark.parametrize("bits", [16, 20])
def test_outliers_take_no_more_than_their_groups_share(descriptor: str, bits: int) -> None:
    """One weight of 64 that is as large as all others together: half a unit for each weight at most."""
    rng = np.random.default_rng(0)
    weight = rng.standard_normal((40, 640), dtype=np.float32)
    weight[:, ::64] *= 1000
    x = rng.standard_normal((1, 640), dtype=np.float32)
    unit = np.abs(weight).reshape(40, 10, 64).max(axis=2) / (2 ** (bits - 1) - 1)
    bound = 0.5 * unit.repeat(64, axis=1) @ np.abs(x[0])
    difference = np.abs(run(descriptor, bits, weight, x)[0] - weight.astype(np.float64) @ x[0])
    assert (difference <= bound + 1e-6 * np.abs(weight) @ np.abs(x[0])).all()


@pytest.mark.parametrize("descriptor", ROUTINES)
def test_values_near_the_largest_stay_finite(descriptor: str) -> None:
    weight = np.array([[0.5, -0.25, 1e-3]], dtype=np.float32)
    x = np.array([[3.4e38, 3.4e38, -3.4e38]], dtype=np.float32)
    np.testing.assert_allclose(run(descriptor, 20, weight, x), x @ weight.T, rtol=1e-5)


@pytest.mark.parametrize("descriptor", ROUTINES)
@pytest.mark.parametrize("scale", [1e-26, 1e-10, 1e36])
def test_small_and_large_weights_are_as_exact(descriptor: str, scale: float) -> None:
    rng = np.random.default_rng(0)
    weight = rng.standard_normal((7, 130), dtype=np.float32) * np.float32(scale)
    x = rng.standard_normal((1, 130), dtype=np.float32)
    assert error(run(descriptor, 20, weight, x), weight, x) < 2e-6


@pytest.mark.parametrize("descriptor", ROUTINES)
def test_weights_of_zero_give_zero(descriptor: str) -> None:
    assert not run(descriptor, 20, np.zeros((5, 70), np.float32), np.ones((2, 70), np.float32)).any()


@pytest.mark.parametrize("descriptor", ROUTINES)
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_weight_that_is_not_finite_reaches_its_output_alone(descriptor: str, value: float) -> None:
    weight = np.ones((21, 70), np.float32)
    weight[3, 66] = value
    finite = np.isfinite(run(descriptor, 20, weight, np.ones((1, 70), np.float32)))[0]
    assert not finite[3]
    assert finite.sum() == 20


@pytest.mark.parametrize("descriptor", ROUTINES)
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_value_that_is_not_finite_reaches_its_row_alone(descriptor: str, value: float) -> None:
    x = np.ones((3, 70), np.float32)
    x[1, 69] = value
    out = run(descriptor, 20, np.ones((21, 70), np.float32), x)
    assert not np.isfinite(out[1]).any()
    np.testing.assert_array_equal(out[[0, 2]], 70)


@pytest.mark.parametrize("descriptor", ROUTINES)
def test_weights_fetched_ahead_change_nothing(descriptor: str) -> None:
    rng = np.random.default_rng(0)
    weight, x = rng.standard_normal((70, 200), dtype=np.float32), rng.standard_normal((2, 200), dtype=np.float32)
    np.testing.assert_array_equal(run(descriptor, 20, weight, x, fetch=1), run(descriptor, 20, weight, x))


@pytest.mark.parametrize(
    ("params", "message"),
    [("{bits=8,fetch=0}", "bits must be 16 or 20, not 8"), ("{bits=16,fetch=2}", "fetch must be 0 or 1")],
)
def test_other_params_are_refused(params: str, message: str) -> None:
    weight = {"weight": np.ones((4, 4), np.float32)}
    with pytest.raises(softneuro.Error, match=message):
        _C.testing.run_routine("linear", {}, weight, [np.ones((1, 4), np.float32)], ROUTINES[0] + params, {}, 1)


@pytest.mark.parametrize(
    ("options", "bits"),
    [({}, {16, 20}), ({"max_error": "2e-5"}, {20}), ({"max_error": "1e-6"}, set()), ({"strict_nonfinite": "1"}, set())],
)
def test_it_is_tried_within_what_the_user_can_bear(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, str], bits: set[int]
) -> None:
    monkeypatch.setenv("SOFTNEURO_CACHE_DIR", str(tmp_path))
    graph = softneuro.Graph()
    weights = {"weight": np.ones((600, 600), np.float32)}
    graph.output(graph.add("linear", [graph.input("x", (1, 600))], weights=weights))
    _C.tune(graph, _C.parse_options(options), 1)
    tried = "\n".join(record.key.descriptor for record in records(tmp_path))
    assert "linear/" in tried
    assert {bits for bits in (16, 20) if f"bits={bits}" in tried} == bits
