"""Childnets: candidates that are small nets of other layers, whose parts are measured apart."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import softneuro
from softneuro import _C
from tests.tune.records import records

ISA = _C.available_isas()[0]
BLOCK = {"avx512": 16, "avx2": 8, "scalar": 4}[ISA]
OPTIONS = {"schemas": f"cpu:float32:nchw{BLOCK}c", "time_budget_s": "10"}


def wide(channels: int = 1040, width: int = 504) -> softneuro.Graph:
    """One row, so that few products meet weights of more than 32 MiB."""
    rng = np.random.default_rng(0)
    graph = softneuro.Graph()
    blob = graph.input("x", (1, channels, 1, width))
    weight = rng.standard_normal((channels, channels, 1, 3), dtype=np.float32)
    graph.output(graph.add("conv2d", [blob], weights={"weight": weight}, padding=[0, 1, 0, 1]))
    return graph


def names(folder: Path) -> list[str]:
    """Signatures and descriptors of all that is known."""
    return [f"{key.signature} {key.descriptor}" for _, key, _ in records(folder)]


@pytest.mark.slow
def test_parts_are_measured_once_and_summed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOFTNEURO_CACHE_DIR", str(tmp_path))
    graph = wide()
    first = _C.tune(graph, _C.parse_options(OPTIONS), 1)
    lines = names(tmp_path)
    if not any("batched_linear/" in line for line in lines):
        pytest.skip("the machine's last cache holds the weights: nothing to win")
    for part in ("winograd_encode/", "batched_linear/", "winograd_decode/"):
        assert any(part in line for line in lines)
    # A whole is timed only in a plan.
    assert not [line for line in lines if "winograd_stages" in line and "batched_linear" in line]
    again = _C.tune(graph, _C.parse_options({**OPTIONS, "tune": "cached"}), 1)
    assert again.counts["measured"] == 0
    assert again.counts["recalled"] == again.counts["candidates"] == first.counts["measured"]


def test_small_layers_are_left_to_the_fused_schedule(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOFTNEURO_CACHE_DIR", str(tmp_path))
    _C.tune(wide(64, 64), _C.parse_options(OPTIONS), 1)
    assert not [line for line in names(tmp_path) if "batched_linear" in line]


def test_a_net_with_a_childnet() -> None:
    rng = np.random.default_rng(1)
    graph = softneuro.Graph()
    x = graph.input("x", (2, 32, 19, 13))
    weights = {"weight": rng.standard_normal((32, 32, 3, 3), dtype=np.float32) / 17}
    post = {"residual": True, "activation": "relu"}
    graph.output(graph.add("conv2d", [x, x], weights=weights, padding=[1] * 4, post=post))
    descriptor = f"conv2d/cpu:float32:nchw{BLOCK}c/winograd_stages_{ISA}{{tile=4,panel=2}}"
    net = softneuro.Net(graph, [descriptor], threads=2)
    value = rng.standard_normal((2, 32, 19, 13), dtype=np.float32)
    np.testing.assert_allclose(net.run([value])[0], graph.reference([value])[0], atol=1e-4)
