"""Layers that make the same masks become one."""

from __future__ import annotations

from collections import Counter

import numpy as np

from softneuro import Graph


def masked(blocks: int, *, numbers: tuple[float, ...] = (0.0,)) -> Graph:
    """Blocks that each compute their mask anew, and add it."""
    graph = Graph()
    x, mask = graph.input("x", (2, 1, 6, 6)), graph.input("mask", (2, 6), "int64")
    for block in range(blocks):
        seen = graph.add("reshape", [graph.add("cast", [mask], to="bool")], shape=[2, 1, 1, 6])
        order = graph.add("constant", [], weights={"value": (np.tri(6, dtype=bool), "bool")})
        both = graph.add("logical", [seen, order], function="and")
        number = np.float32(numbers[block % len(numbers)])
        values = [graph.add("constant", [], weights={"value": np.full(1, v, np.float32)}) for v in (number, -np.inf)]
        scores = graph.add("binary", [x, graph.add("where", [both, *values])], function="add")
        x = graph.add("softmax", [scores], axis=3)
    graph.output(x)
    return graph


def counts(graph: Graph) -> Counter[str]:
    return Counter(layer["type"] for layer in graph.layers())


def test_masks_of_blocks_are_one() -> None:
    graph = masked(3)
    inputs = [np.random.default_rng(0).standard_normal((2, 1, 6, 6)), np.array([[1] * 6, [1, 1, 1, 0, 0, 0]])]
    (expected,) = graph.reference(inputs)
    graph.optimize()
    found = counts(graph)
    assert [found[kind] for kind in ("cast", "logical", "where", "constant")] == [1, 1, 1, 3]
    assert found["softmax"] == 3
    np.testing.assert_array_equal(graph.reference(inputs)[0], expected)


def test_other_numbers_and_outputs_stay() -> None:
    graph = masked(4, numbers=(0.0, 1.0))
    graph.optimize()
    assert counts(graph)["where"] == 2
    graph = Graph()
    x = graph.input("x", (3,), "bool")
    for _ in range(2):
        graph.output(graph.add("logical", [x], function="not"))
    graph.optimize()
    assert counts(graph)["logical"] == 2


def test_what_computes_with_reals_stays() -> None:
    graph = Graph()
    x = graph.input("x", (3, 4))
    a, b = (graph.add("activation", [x], function="tanh") for _ in range(2))
    graph.output(graph.add("matmul", [a, b], transpose_b=1))
    graph.optimize()
    assert counts(graph)["activation"] == 2
