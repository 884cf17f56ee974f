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
