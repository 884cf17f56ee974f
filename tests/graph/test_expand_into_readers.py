"""What is expanded is read as it was by layers that broadcast."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from softneuro import Graph


def types(graph: Graph) -> list[str]:
    return [layer["type"] for layer in graph.layers()]


def expanded(graph: Graph, shape: tuple[int, ...], to: list[int], dtype: str = "float32") -> int:
    return graph.add("expand", [graph.input("small", shape, dtype)], shape=to)


def agrees(graph: Graph, *inputs: Any) -> None:
    (expected,) = graph.reference(list(inputs))
    graph.optimize()
    np.testing.assert_array_equal(graph.reference(list(inputs))[0], expected)


@pytest.mark.parametrize("shape", [(2, 1, 4), (4,), (1,), ()])
def test_operands_of_a_quotient(shape: tuple[int, ...]) -> None:
    graph = Graph()
    large = graph.input("large", (2, 3, 4))
    graph.output(graph.add("binary", [large, expanded(graph, shape, [2, 3, 4])], function="div"))
    rng = np.random.default_rng(0)
    agrees(graph, rng.standard_normal((2, 3, 4)), rng.standard_normal(shape) + 9)
    assert types(graph) == ["binary"]


def test_a_mask() -> None:
    graph = Graph()
    x = graph.input("x", (2, 3, 4))
    mask = expanded(graph, (2, 1, 1), [2, 3, 4], "bool")
    number = graph.add("constant", [], weights={"value": np.full(1, 7, np.float32)})
    graph.output(graph.add("where", [mask, x, number]))
    agrees(graph, np.random.default_rng(0).standard_normal((2, 3, 4)), np.array([1, 0]).reshape(2, 1, 1))
    assert "expand" not in types(graph)


def test_stays_where_it_makes_the_shape() -> None:
    """Of two operands that are repeated along one axis, one has to be."""
    graph = Graph()
    other = graph.input("other", (1, 3, 4))
    graph.output(graph.add("binary", [other, expanded(graph, (1, 3, 4), [5, 3, 4])], function="add"))
    rng = np.random.default_rng(0)
    agrees(graph, rng.standard_normal((1, 3, 4)), rng.standard_normal((1, 3, 4)))
    assert types(graph).count("expand") == 1


def test_stays_for_other_readers() -> None:
    graph = Graph()
    large = graph.input("large", (2, 3, 4))
    repeated = expanded(graph, (2, 1, 4), [2, 3, 4])
    graph.output(graph.add("binary", [large, repeated], function="mul"))
    graph.output(graph.add("activation", [repeated], function="tanh"))
    graph.optimize()
    assert sorted(types(graph)) == ["activation", "binary", "expand"]
