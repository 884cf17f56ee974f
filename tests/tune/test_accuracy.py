"""Plans of inexact routines stay within max_error, whatever the network makes of a layer's error."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import softneuro
from softneuro import _C
from tests.tune.records import costs, records


def convolutions(output: str = "float32") -> softneuro.Graph:
    """Two 3x3 convolutions in a row."""
    rng = np.random.default_rng(0)
    graph = softneuro.Graph()
    blob = graph.input("x", (1, 64, 40, 40))
    for _ in range(2):
        weights = {"weight": rng.standard_normal((64, 64, 3, 3), dtype=np.float32) / 24}
        blob = graph.add("conv2d", [blob], weights=weights, padding=[1, 1, 1, 1])
    graph.output(blob, output)
    return graph


def descriptors(plan: softneuro.Plan) -> str:
    return " ".join(layer.descriptor for layer in plan.layers)


def is_exact(plan: softneuro.Plan) -> bool:
    return not re.search(r"/(winograd|bf16x)", descriptors(plan))


@pytest.mark.parametrize("output", ["float32", "bfloat16", "float16"])
def test_measured_errors_decide_and_are_remembered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, output: str
) -> None:
    """Errors of plans are measured once; were they above half of max_error, there would be another plan.

    What counts is the result before it is rounded to the output's type: roundings would differ by far more.
    """
    monkeypatch.setenv("SOFTNEURO_CACHE_DIR", str(tmp_path))
    graph, options = convolutions(output), _C.parse_options({})
    _C.tune(graph, options, 1)
    for cost in costs(tmp_path):
        if "/winograd" in cost.descriptor or "/bf16x" in cost.descriptor:  # whatever this machine runs fastest
            cost.make_up(1e-9)
    first = changed = _C.tune(graph, options, 1)
    assert not is_exact(first)
    errors = [record.fields["error"] for record in records(tmp_path, "error")]
    assert errors
    assert all(1e-8 < error < 5e-5 for error in errors)

    again = _C.tune(graph, options, 1)
    assert descriptors(again) == descriptors(first)
    assert again.counts["measured"] == 0

    for _ in range(20):  # plans that have had no error yet are measured, and may be chosen, in their turn
        for record in records(tmp_path, "error"):
            _C.CostDb().put("error", record.key, {"error": 1e-2})
        changed = _C.tune(graph, options, 1)
        if is_exact(changed):
            break
    assert is_exact(changed)
    assert changed.predicted_s >= changed.lower_bound_s >= first.lower_bound_s


def tile_of(descriptor: str) -> int:
    """Winograd's, 1 for any other routine."""
    found = re.search(r"/winograd_\w+\{.*?tile=(\d)", descriptor)
    return int(found[1]) if found else 1


def magnifying() -> softneuro.Graph:
    """A 3x3 convolution, nearly the same subtracted by a 1x1 one, so that its errors are a hundredfold, and another."""
    rng = np.random.default_rng(0)
    weight = rng.standard_normal((64, 64, 3, 3), dtype=np.float32) / 24
    center = np.zeros_like(weight)
    center[:, :, 1, 1] = weight[:, :, 1, 1]
    near = weight[:, :, 1:2, 1:2] * (1 + 0.01 * rng.standard_normal((64, 64, 1, 1), dtype=np.float32))
    graph = softneuro.Graph()
    x = graph.input("x", (1, 64, 40, 40))
    one = graph.add("conv2d", [x], weights={"weight": center}, padding=[1, 1, 1, 1])
    difference = graph.add("binary", [one, graph.add("conv2d", [x], weights={"weight": near})], function="sub")
    graph.output(graph.add("conv2d", [difference], weights={"weight": weight}, padding=[1, 1, 1, 1]))
    return graph


def test_layers_whose_errors_are_magnified_are_more_exact(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOFTNEURO_CACHE_DIR", str(tmp_path))
    graph, options = magnifying(), _C.parse_options({"max_memory": "100"})
    _C.tune(graph, options, 1)
    entries = costs(tmp_path)
    signatures = {cost.signature for cost in entries if "/winograd_" in cost.descriptor}
    for cost in entries:
        if cost.signature in signatures:  # the larger the tile, the faster by far, whatever it takes of memory
            cost.make_up(10.0 ** (2 - tile_of(cost.descriptor)))
    plan = _C.tune(graph, options, 1)
    first, _, last = (tile_of(layer.descriptor) for layer in plan.layers if layer.type == "conv2d")
    assert last > 4  # of the best plans the one that really is the fastest
    assert first <= 4

    before = (tmp_path / "costs.txt").read_text()
    for mode in ("profile", "cached"):
        again = _C.tune(graph, _C.parse_options({"max_memory": "100", "tune": mode}), 1)
        assert descriptors(again) == descriptors(plan)
    assert (tmp_path / "costs.txt").read_text() == before


def magnified_and_pooled() -> softneuro.Graph:
    """A pooled 3x3 convolution, less one of nearly the same result, so that its errors are some twentyfold."""
    rng = np.random.default_rng(0)
    center = np.zeros((64, 64, 3, 3), np.float32)
    center[:, :, 1, 1] = rng.standard_normal((64, 64), dtype=np.float32) / 8
    near = center[:, :, 1:2, 1:2] * (1 + 0.05 * rng.standard_normal((64, 64, 1, 1), dtype=np.float32))
    graph = softneuro.Graph()
    x = graph.input("x", (1, 64, 40, 40))
    convs = [
        graph.add("conv2d", [x], weights={"weight": center}, padding=[1] * 4, name="wide"),
        graph.add("conv2d", [x], weights={"weight": near}),
    ]
    window = {"kernel": [2, 2], "stride": [2, 2], "padding": [0] * 4}
    graph.output(graph.add("binary", [graph.add("pool2d", [c], function="max", **window) for c in convs],
                           function="sub"))  # fmt: skip
    return graph


def test_a_fusion_has_more_exact_candidates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where errors bound the tile, a smaller one of the fusion comes next, not the layers' own routines."""
    monkeypatch.setenv("SOFTNEURO_CACHE_DIR", str(tmp_path / "real"))
    graph, options = magnified_and_pooled(), _C.parse_options({"max_memory": "100"})
    _C.tune(graph, options, 1)
    entries = [cost for cost in costs(tmp_path / "real") if "graph" not in cost.signature]
    monkeypatch.setenv("SOFTNEURO_CACHE_DIR", str(tmp_path / "made"))
    for cost in entries:
        # The larger the tile, the faster by far, whatever it takes of memory, and the fusion faster than its layers.
        seconds = 1e-6
        if "weight:64x64x3x3" in cost.signature:
            power = 4 if cost.descriptor.startswith("conv_pool/") else 5
            seconds = min(10.0 ** (power - tile_of(cost.descriptor)), 1000.0)
        cost.make_up(seconds)
    plan = _C.tune(graph, options, 1)
    (fused,) = (layer.descriptor for layer in plan.layers if "winograd_bands" in layer.descriptor)
    assert tile_of(fused) < max(tile_of(cost.descriptor) for cost in entries)
