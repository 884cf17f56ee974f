"""dynamic_quantize: all three outputs, whatever lies where."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given

import softneuro

from .strategies import dynamic_quantize
from .strategies.common import Problem


def run(problem: Problem, threads: int = 1) -> tuple[list[Any], list[Any]]:
    """What the net gives and what the reference does."""
    graph = softneuro.Graph()
    (x,) = problem["inputs"]
    outputs = graph.outputs_of(graph.add("dynamic_quantize", [graph.input("x", x.shape)], **problem["attrs"]))
    for blob in outputs:
        graph.output(blob)
    net = softneuro.Net(graph, softneuro.tune(graph, {"tune": "off", "threads": threads}))
    return net.run([x]), graph.reference([x])


@given(problem=dynamic_quantize.problems())
def test_all_outputs(problem: Problem) -> None:
    for threads in (1, 3):
        for actual, expected in zip(*run(problem, threads), strict=True):
            np.testing.assert_array_equal(actual, expected.astype(np.float32))


@pytest.mark.parametrize("rows", [False, True])
def test_what_is_not_finite(rows: bool) -> None:
    x = np.ones((3, 40), np.float32)
    x[1, 7] = np.inf
    (_, scale, _), _ = run({"attrs": {"rows": rows}, "weights": {}, "inputs": [x]})
    assert np.isnan(scale).tolist() == ([[False], [True], [False]] if rows else True)


def test_bad_attributes() -> None:
    graph = softneuro.Graph()
    with pytest.raises(softneuro.Error, match="no rows"):
        graph.add("dynamic_quantize", [graph.input("x", ())], rows=True)
    with pytest.raises(softneuro.Error, match="least and most are 3 and 5"):
        graph.add("dynamic_quantize", [graph.input("y", (2, 3))], least=3, most=5)
