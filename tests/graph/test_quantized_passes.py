"""Passes on quantized layers: factors go into the scales of weights, which stay bytes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import softneuro
from softneuro import _C

STEPS = {"quantize": {"scale": 0.5, "zero_point": 100}}


def weight(*shape: int, axis: int = -1) -> tuple[np.ndarray, dict[str, Any]]:
    rng = np.random.default_rng(0)
    scale = 0.01 if axis < 0 else (0.01 * rng.uniform(0.5, 1.5, shape[axis])).tolist()
    return rng.integers(-127, 128, shape).astype(np.int8), {"scale": scale, "axis": axis, "least": -128, "most": 127}


def factors(least: float = 0.2) -> np.ndarray:
    return np.linspace(least, 3, 6, dtype=np.float32).reshape(1, 6, 1, 1)


def product(graph: softneuro.Graph, x: int, other: np.ndarray) -> int:
    return graph.add("binary", [x], weights={"other": other}, function="mul")


def started() -> tuple[softneuro.Graph, int]:
    graph = softneuro.Graph()
    return graph, graph.input("x", (2, 4, 5, 5), "cpu:qint8:nchw", {"scale": 0.03, "zero_point": 120})


def optimized(graph: softneuro.Graph) -> tuple[list[str], list[str]]:
    """Types of layers, and for which weights some compute with floats. The graph is worth what it was."""
    values = (np.random.default_rng(1).integers(0, 256, (2, 4, 5, 5)) - 120) * np.float64(np.float32(0.03))
    (before,) = graph.reference([values])
    graph.optimize()
    (after,) = graph.reference([values])
    # Folded scales are rounded to float32, and so may decide a tie.
    assert np.count_nonzero(np.abs(after - before) > 1e-5) <= 0.01 * before.size
    plan = _C.tune(graph, _C.parse_options({"tune": "off"}), 1)
    reasons = [layer.in_floats for layer in plan.layers if "weights" in layer.in_floats]
    return [layer["type"] for layer in graph.layers()], reasons


@pytest.mark.parametrize("axis", [-1, 0])
@pytest.mark.parametrize("relu", [False, True])
def test_factors_behind_a_convolution(relu: bool, axis: int) -> None:
    graph, x = started()
    bias = np.linspace(-2, 2, 6, dtype=np.float32)
    y = graph.add("conv2d", [x], weights={"weight": weight(6, 4, 3, 3, axis=axis), "bias": bias})
    if relu:
        y = graph.add("activation", [y], function="relu")
    graph.output(graph.add("quantize", [product(graph, y, factors())], post=STEPS))
    assert optimized(graph) == (["conv2d", "quantize"], [])


def test_factors_that_are_not_positive() -> None:
    """They do not pass a relu, and no scale can be so."""
    graph, x = started()
    y = graph.add("activation", [graph.add("conv2d", [x], weights={"weight": weight(6, 4, 3, 3)})], function="relu")
    graph.output(graph.add("quantize", [product(graph, y, factors(-1))], post=STEPS))
    assert optimized(graph) == (["conv2d", "binary", "quantize"], [])

    graph, x = started()
    y = graph.add("conv2d", [x], weights={"weight": weight(6, 4, 3, 3)})
    graph.output(graph.add("quantize", [product(graph, y, factors(-1))], post=STEPS))
    assert optimized(graph) == (["conv2d", "quantize"], ["the weights are not quantized"])


def depthwise(other: np.ndarray, groups: int = 6, shift: bool = False) -> softneuro.Graph:
    graph, x = started()
    y = graph.add("conv2d", [x], weights={"weight": weight(6, 4, 1, 1)})
    y = graph.add("quantize", [y], post={"quantize": {"scale": 1.0, "zero_point": 100}})
    if shift:
        y = graph.add("binary", [y], weights={"other": factors()}, function="sub")
    y = product(graph, y, other)
    weights = {"weight": weight(12, 6 // groups, 3, 3, axis=0)}
    graph.output(graph.add("conv2d", [y], weights=weights, groups=groups, padding=[1, 1, 1, 1]))
    return graph


def test_factors_in_front_of_a_depthwise_convolution() -> None:
    assert optimized(depthwise(factors())) == (["conv2d", "quantize", "conv2d"], [])


def test_factors_in_front_of_others_stay() -> None:
    assert "binary" in optimized(depthwise(factors(), groups=1))[0]
    assert "binary" in optimized(depthwise(factors(-1)))[0]
    assert "binary" in optimized(depthwise(factors(), shift=True))[0]


def clamp(graph: softneuro.Graph, x: int, least: float, most: float) -> int:
    return graph.add("activation", [x], function="clamp", a=least, b=most)


def test_a_clamp_of_bytes_comes_before_they_are_rounded() -> None:
    graph, x = started()
    y = graph.add("quantize", [graph.add("conv2d", [x], weights={"weight": weight(6, 4, 3, 3)})], post=STEPS)
    graph.output(clamp(graph, y, -1.5, 4.0))
    assert optimized(graph) == (["conv2d", "quantize"], [])


@pytest.mark.parametrize(("least", "most", "readers"), [(-1.4, 4.0, 1), (-1.5, 4.1, 1), (-1.5, 4.0, 2)])
def test_a_clamp_that_stays(least: float, most: float, readers: int) -> None:
    """Bounds that are no steps, or bytes that something else reads, too."""
    graph, x = started()
    y = graph.add("quantize", [graph.add("conv2d", [x], weights={"weight": weight(6, 4, 3, 3)})], post=STEPS)
    graph.output(clamp(graph, y, least, most))
    for _ in range(readers - 1):
        graph.output(graph.add("pool2d", [y], function="max", kernel=[2, 2], stride=[2, 2]))
        graph.optimize()
        assert [layer["type"] for layer in graph.layers()].count("activation") == 1
        return
    assert optimized(graph)[0] == ["conv2d", "quantize", "activation"]


def test_a_clamp_behind_what_may_be_nan_stays() -> None:
    """A quantization makes NaN the least step, and the clamp more of it."""
    graph = softneuro.Graph()
    y = graph.add("conv2d", [graph.input("x", (2, 4, 5, 5))], weights={"weight": weight(6, 4, 3, 3)})
    graph.output(clamp(graph, graph.add("quantize", [y], post=STEPS), -1.5, 4.0))
    graph.optimize()
    assert [layer["type"] for layer in graph.layers()] == ["conv2d", "quantize", "activation"]


@pytest.mark.parametrize("function", ["sqrt", "pow", "div"])
def test_a_clamp_behind_what_makes_nan_of_numbers_stays(function: str) -> None:
    graph, x = started()
    other = {"other": np.full((1, 4, 1, 1), 0.0 if function == "div" else 0.5, np.float32)}
    y = graph.add("binary", [x], weights={} if function == "sqrt" else other, function=function)
    graph.output(graph.add("activation", [graph.add("quantize", [y], post=STEPS)], function="relu"))
    assert optimized(graph)[0] == ["binary", "quantize", "activation"]


@pytest.mark.parametrize("role", ["weight", "bias"])
def test_a_clamp_behind_weights_that_are_no_numbers_stays(role: str) -> None:
    graph, x = started()
    weights = {"weight": np.ones((6, 4, 3, 3), np.float32), "bias": np.ones(6, np.float32)}
    weights[role][3] = np.nan
    y = graph.add("quantize", [graph.add("conv2d", [x], weights=weights)], post=STEPS)
    graph.output(graph.add("activation", [y], function="relu"))
    assert optimized(graph)[0] == ["conv2d", "quantize", "activation"]


@pytest.mark.parametrize(("least", "folded"), [(0.2, True), (0.0, False), (-1.0, False)])
def test_factors_behind_bytes_that_must_stay_so(least: float, folded: bool) -> None:
    graph = softneuro.Graph()
    y = graph.add("dynamic_conv2d", [graph.input("x", (2, 4, 5, 5))], weights={"weight": weight(6, 4, 3, 3)})
    graph.output(product(graph, y, factors(least)))
    x = np.random.default_rng(1).standard_normal((2, 4, 5, 5))
    (before,) = graph.reference([x])
    graph.optimize()
    (after,) = graph.reference([x])
    np.testing.assert_allclose(after, before, rtol=1e-5, atol=1e-5)
    assert [layer["type"] for layer in graph.layers()] == ["dynamic_conv2d"] + ["binary"] * (not folded)


def last(graph: softneuro.Graph, x: int) -> int:
    return graph.add("transpose", [x], perm=[0, 2, 3, 1])


def first(graph: softneuro.Graph, x: int) -> int:
    return graph.add("transpose", [x], perm=[0, 3, 1, 2])


def conv_to_last(graph: softneuro.Graph, x: int, k: int = 4) -> int:
    c = graph.shape(x)[1]
    y = graph.add("conv2d", [x], weights={"weight": weight(k, c, 1, 1)})
    return last(graph, graph.add("quantize", [y], post=STEPS))


def test_channels_come_first_between_bytes() -> None:
    """Sums, functions, constants and joins of tensors with channels last, of which others are read more than once."""
    graph, x = started()
    a, b = conv_to_last(graph, x), conv_to_last(graph, x)
    y = graph.add("quantize", [graph.add("binary", [a, b], function="add")], post=STEPS)
    s = graph.add("quantize", [graph.add("activation", [y], function="sigmoid")], post=STEPS)
    y = graph.add("quantize", [graph.add("binary", [y, s], function="mul")], post=STEPS)
    scales = {"other": np.linspace(0.5, 1.5, 4, dtype=np.float32)}
    y = graph.add("quantize", [graph.add("binary", [y], weights=scales, function="mul")], post=STEPS)
    y = graph.add("concat", [y, a], axis=3)
    y = conv_to_last(graph, first(graph, y))
    graph.output(first(graph, graph.add("activation", [y], function="relu")))
    types, _ = optimized(graph)
    assert "transpose" not in types, types


def test_other_transposes_of_bytes_stay() -> None:
    graph, x = started()
    a, b = conv_to_last(graph, x), conv_to_last(graph, x)
    rows = graph.add("transpose", [a], perm=[0, 2, 1, 3])
    graph.output(graph.add("binary", [rows, b], function="add"))
    both = np.ones((5, 4), np.float32)  # along two axes
    graph.output(graph.add("binary", [b], weights={"other": both}, function="mul"))
    graph.optimize()
    assert [layer["type"] for layer in graph.layers()].count("transpose") == 2
