"""Plans say why layers compute with floats what is quantized."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import softneuro
from softneuro import _C


def weight(*zero_points: int) -> tuple[np.ndarray, dict[str, Any]]:
    """A weight with one zero point, or one for each output."""
    values = np.random.default_rng(0).integers(-127, 128, (8, 6)).astype(np.int8)
    several = {"axis": 0, "scale": [0.004] * 8} if len(zero_points) > 1 else {"scale": 0.004}
    return values, {**several, "zero_point": list(zero_points), "least": -128, "most": 127}


def reasons(graph: softneuro.Graph, **options: str) -> dict[str, str]:
    plan = _C.tune(graph, _C.parse_options({"tune": "off", **options}), 1)
    return {layer.name: layer.in_floats for layer in plan.layers}


def graph_of_layers() -> softneuro.Graph:
    graph = softneuro.Graph()
    q = graph.input("q", (3, 6), "cpu:qint8:nchw", {"scale": 0.03, "zero_point": 120})
    x = graph.input("x", (3, 6))
    graph.output(graph.add("linear", [q], name="bytes", weights={"weight": weight(0)}))
    graph.output(graph.add("linear", [q], name="zeros", weights={"weight": weight(*range(8))}))
    graph.output(graph.add("linear", [q], name="zero", weights={"weight": weight(3)}))
    graph.output(graph.add("linear", [x], name="real", weights={"weight": weight(0)}))
    graph.output(graph.add("dynamic_linear", [x], name="dynamic", weights={"weight": weight(0)}))
    graph.output(graph.add("softmax", [q], name="softmax", axis=1))
    graph.output(graph.add("softmax", [x], name="plain", axis=1))
    return graph


def test_reasons(tmp_path: Path) -> None:
    expected = {
        "bytes": "",
        "zero": "",
        "zeros": "the weights have several zero points",
        "real": "its input is not quantized",
        "dynamic": "",
        "softmax": "no routine of softmax reads bytes and writes floats",
        "plain": "",
    }
    file = {"plan": str(tmp_path / "plan")}
    assert reasons(graph_of_layers(), **file) == expected
    assert reasons(graph_of_layers(), **file) == expected  # read from the file


def test_what_was_measured() -> None:
    graph = graph_of_layers()
    plan = _C.tune(graph, _C.parse_options({"tune": "profile", "time_budget_s": "1"}), 1)
    layers = {layer.name: layer for layer in plan.layers}
    takes_bytes = "cpu:qint8" in layers["bytes"].descriptor
    assert layers["bytes"].in_floats == ("" if takes_bytes else "floats cost less")
