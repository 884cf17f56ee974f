"""Ops with other ways to compute them, at zeros of both signs, infinities and NaN: all as the CPU provider has them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import helper

from tests.providers.conftest import cpu_session, make_model, reasons, whole_session

INF, NAN = float("inf"), float("nan")
SPECIAL = [0.0, -0.0, 1.0, -1.0, 4.0, -4.0, 3e4, -3e4, INF, -INF, NAN]
TYPES = {"FLOAT": np.float32, "FLOAT16": np.float16}


def run_both(op: str, kind: str, constants: list[float | None], opset: int = 18, **attributes: Any) -> None:
    dtype = TYPES[kind]
    named = {f"c{i}": np.array(value, dtype) for i, value in enumerate(constants) if value is not None}
    inputs = ["x", *("" if value is None else f"c{i}" for i, value in enumerate(constants))]
    node = helper.make_node(op, inputs, ["y"], **attributes)
    x = np.array([*SPECIAL, np.finfo(dtype).max, np.finfo(dtype).min] * 3, dtype).reshape(3, 13)
    model = make_model([node], {"x": x.shape}, {"y": x.shape}, named, opset, {"x": kind, "y": kind})
    ours = whole_session(model, never_worse=False)
    result, expected = ours.run(None, {"x": x})[0], cpu_session(model).run(None, {"x": x})[0]
    assert not reasons(ours)
    assert result.dtype == expected.dtype
    np.testing.assert_allclose(result, expected, rtol=1e-3 if kind == "FLOAT16" else 1e-5)
    numbers = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(result[numbers]), np.signbit(expected[numbers]))


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("most", [None, 1.0, "largest", INF, NAN])
@pytest.mark.parametrize("least", [None, -1.0, 2.0, "largest", -INF, NAN])
def test_clip(kind: str, least: float | str | None, most: float | str | None) -> None:
    """A bound that is left out is the type's extreme."""
    limit = float(np.finfo(TYPES[kind]).max)
    bounds = [-limit if least == "largest" else least, limit if most == "largest" else most]
    run_both("Clip", kind, bounds)  # type: ignore[arg-type]


@pytest.mark.parametrize("opset", [6, 11, 12])
@pytest.mark.parametrize("kind", TYPES)
def test_clip_without_bounds(kind: str, opset: int) -> None:
    """Before opset 12 float32's extremes bound halves as well."""
    run_both("Clip", kind, [], opset)


def test_softmax_behind_a_clip_of_infinities() -> None:
    """The infinities are convolutions' overflows: a softmax of one would be NaN."""
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"]),
        helper.make_node("Clip", ["c"], ["d"]),
        helper.make_node("Softmax", ["d"], ["y"], axis=1),
    ]
    w = np.full((8, 4, 1, 1), 1e30, np.float32)
    w[::2] *= -1
    model = make_model(nodes, {"x": (1, 4, 3, 3)}, {"y": None}, {"w": w})
    x = np.full((1, 4, 3, 3), 1e30, np.float32)
    ours = whole_session(model, never_worse=False)
    result = ours.run(None, {"x": x})[0]
    assert not reasons(ours)
    np.testing.assert_allclose(result, cpu_session(model).run(None, {"x": x})[0], rtol=1e-6)
    assert np.isfinite(result).all()


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("exponent", [0.0, 0.5, -0.5, 1.0, -1.0, 1.5, 2.0, 3.0, -2.0, INF, NAN])
def test_power(kind: str, exponent: float) -> None:
    run_both("Pow", kind, [exponent])


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("op", ["Abs", "Sqrt", "Neg", "Reciprocal", "Relu", "Sigmoid", "Tanh", "Exp", "Log"])
def test_function(kind: str, op: str) -> None:
    run_both(op, kind, [])
