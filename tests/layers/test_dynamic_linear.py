"""dynamic_linear against what hosts compute, written down in NumPy; the same bits at every level."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, seed, settings

import softneuro
from softneuro import _C

from .strategies import dynamic_linear

F = np.float32


def run(problem: dict[str, Any], threads: int = 1) -> dict[str, Any]:
    """The result of each routine."""
    args = ("dynamic_linear", problem["attrs"], problem["weights"])
    post = problem.get("post", {})
    accepted = _C.testing.accepting(*args, [x.shape for x in problem["inputs"]], post, threads)
    return {d: _C.testing.run_routine(*args, problem["inputs"], d, post, threads) for d in accepted if "int8" in d}


def product(steps: Any, weights: dict[str, Any], scale: Any) -> Any:
    """The product in integers, then as floats have it."""
    values, q = weights["weight"]
    sums = steps.astype(np.int64) @ values.astype(np.int64).T
    return sums.astype(np.float64) * scale * np.float64(F(q["scale"])) + weights.get("bias", F(0))


def drawn(rng: np.random.Generator, rows: int, c: int, k: int) -> tuple[Any, dict[str, Any]]:
    scale = {"scale": rng.uniform(0.001, 0.02, k).astype(F).tolist(), "least": -128, "most": 127, "axis": 0}
    values = rng.integers(-128, 128, (k, c)).astype(np.int8)
    weights = {"weight": (values, scale), "bias": rng.standard_normal(k, dtype=F)}
    return rng.standard_normal((rows, c), dtype=F) + F(0.3), weights


@pytest.mark.parametrize("rows", [1, 5, 70])
def test_as_onnx_has_it(rows: int) -> None:
    """DynamicQuantizeLinear, MatMulInteger and what follows."""
    x, weights = drawn(np.random.default_rng(rows), rows, 300, 90)
    least, most = np.minimum(x.min(), F(0)), np.maximum(x.max(), F(0))
    scale = (most - least) / F(255)
    zero = np.clip(np.rint(-least / scale), 0, 255)
    steps = np.clip(np.rint(x / scale) + zero, 0, 255) - zero
    expected = product(steps, weights, scale)
    results = run({"attrs": {}, "weights": weights, "inputs": [x]}, threads=2)
    assert results
    for descriptor, actual in results.items():
        np.testing.assert_allclose(actual, expected, rtol=3e-7, atol=1e-5, err_msg=descriptor)


@pytest.mark.parametrize("rows", [1, 5, 70])
def test_as_torch_has_it(rows: int) -> None:
    """A symmetric scale per row, times its reciprocal."""
    x, weights = drawn(np.random.default_rng(rows), rows, 300, 90)
    x[0] = 0
    scale = np.maximum(np.abs(x).max(1, keepdims=True) / F(127), F(1e-5))
    steps = np.clip(np.rint(x * (F(1) / scale)), -127, 127)
    attrs = {"rows": True, "symmetric": True, "reciprocal": True, "least": -127, "most": 127, "eps": 1e-5}
    results = run({"attrs": attrs, "weights": weights, "inputs": [x]}, threads=2)
    for descriptor, actual in results.items():
        expected = product(steps, weights, scale)
        np.testing.assert_allclose(actual, expected, rtol=3e-7, atol=1e-5, err_msg=descriptor)
        np.testing.assert_array_equal(actual[0], weights["bias"])


@seed(0)
@settings(max_examples=60, deadline=None, database=None)
@given(problem=dynamic_linear.problems())
def test_the_same_bits_at_every_level(problem: dict[str, Any]) -> None:
    if problem["post"].get("activation", "relu") not in ("relu", "clamp"):
        problem["post"] = {}
        problem["inputs"] = problem["inputs"][:1]
    results = run(problem) | {d + " 3 threads": y for d, y in run(problem, 3).items()}
    first = next(iter(results.values()))
    for descriptor, actual in results.items():
        np.testing.assert_array_equal(actual, first, err_msg=descriptor)


def test_extremes_are_exact() -> None:
    """Sums near the ends of 32 bits; one product more than there may be is left to the reference."""
    most = 65408
    for c, zero_point in [(most, 0), (most // 2, -128)]:
        values = np.full((2, c), 127, np.int8)
        values[1] = -128 if zero_point == 0 else 127
        q = {"scale": 1.0, "least": -128, "most": 127, "zero_point": zero_point}
        x = np.full((1, c), F(255))
        x[0, 0] = 0
        results = run({"attrs": {}, "weights": {"weight": (values, q)}, "inputs": [x]})
        expected = x.astype(np.float64) @ (values.astype(np.float64) - zero_point).T
        assert results
        for actual in results.values():
            np.testing.assert_array_equal(actual, expected.astype(F))
        more = {
            "attrs": {},
            "weights": {"weight": (np.zeros((1, c + 1), np.int8), q)},
            "inputs": [x[:, :1].repeat(c + 1, 1)],
        }
        assert not run(more)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_spreads_over_its_scale(value: float) -> None:
    x, weights = drawn(np.random.default_rng(0), 3, 40, 20)
    clean = x.copy()
    x[1, 7] = value
    for rows in (True, False):
        attrs = {"rows": rows}
        ok = run({"attrs": attrs, "weights": weights, "inputs": [clean]})
        for descriptor, actual in run({"attrs": attrs, "weights": weights, "inputs": [x]}).items():
            assert np.isnan(actual[1]).all()
            if rows:
                np.testing.assert_array_equal(actual[[0, 2]], ok[descriptor][[0, 2]])
            else:
                assert np.isnan(actual).all()


def test_wrong_attributes_are_refused() -> None:
    graph = softneuro.Graph()
    x = graph.input("x", (2, 4))
    q = {"scale": 0.1, "least": -128, "most": 127}
    weights = {"weight": (np.zeros((3, 4), np.int8), q)}
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"least": 3}, "eight bits"),
        ({"most": 300}, "eight bits"),
        ({"eps": -1.0}, "eps"),
    ]
    for attrs, said in wrong:
        with pytest.raises(softneuro.Error, match=said):
            graph.add("dynamic_linear", [x], weights=weights, **attrs)
    with pytest.raises(softneuro.Error, match="not quantized"):
        graph.add("dynamic_linear", [x], weights={"weight": np.zeros((3, 4), F)})
