"""What a first tuning measures, and that a later one neither measures nor decides otherwise."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import softneuro
from softneuro import _C
from tests.tune.records import costs, records
from tests.tune.test_accuracy import descriptors


def convolutions(*channels: int) -> softneuro.Graph:
    """3x3 convolutions of an image, each of its own number of channels."""
    rng = np.random.default_rng(0)
    graph = softneuro.Graph()
    image = graph.input("x", (1, 16, 20, 20))
    for count in channels:
        weights = {"weight": rng.standard_normal((count, 16, 3, 3), dtype=np.float32)}
        graph.output(graph.add("conv2d", [image], weights=weights, padding=[1, 1, 1, 1]))
    return graph


def samples(folder: Path, shape: str) -> dict[str, int]:
    """By descriptor, how many samples the database's records of a layer come from; 0 for forecasts."""
    own = [record for record in records(folder) if shape in record.key.signature]
    forecasts = {record.key.descriptor: 0 for record in own if record.kind == "forecast"}
    return forecasts | {key.descriptor: fields["samples"] for kind, key, fields in own if kind == "time"}


def test_what_loses_in_layers_like_it_is_not_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOFTNEURO_CACHE_DIR", str(tmp_path / "measured"))
    options = _C.parse_options({})
    _C.tune(convolutions(32, 64, 48), options, 1)
    wanted = "weight:48x16x3x3"
    names = sorted(samples(tmp_path / "measured", wanted))
    if len(names) < 8:
        pytest.skip("too few routines to leave any out")
    slow = {name.split("{")[0] for name in names[: len(names) // 3]}
    monkeypatch.setenv("SOFTNEURO_CACHE_DIR", str(tmp_path / "made_up"))
    for cost in costs(tmp_path / "measured"):
        if cost.signature.startswith("conv2d") and wanted not in cost.signature:
            cost.make_up(1e-3 if cost.descriptor.split("{")[0] in slow else 1e-5)
    graph = convolutions(32, 64, 48)
    first = _C.tune(graph, options, 1)
    found = samples(tmp_path / "made_up", wanted)
    assert {name.split("{")[0] for name, count in found.items() if count == 0} == slow
    assert not any(layer.descriptor.split("{")[0] in slow for layer in first.layers)
    assert first.counts["guessed"] > 0

    before = (tmp_path / "made_up" / "costs.txt").read_text()
    again = _C.tune(graph, options, 1)
    assert descriptors(again) == descriptors(first)
    assert again.counts["measured"] == again.counts["guessed"] == 0
    assert (tmp_path / "made_up" / "costs.txt").read_text() == before


def test_what_there_was_no_time_for_is_not_measured_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """But with more time it is."""
    monkeypatch.setenv("SOFTNEURO_CACHE_DIR", str(tmp_path))
    graph, hurried = convolutions(32, 64, 48), _C.parse_options({"time_budget_s": "1e-6"})
    first = _C.tune(graph, hurried, 1)
    assert first.counts["measured"] == 0
    before = (tmp_path / "costs.txt").read_text()
    again = _C.tune(graph, hurried, 1)
    assert descriptors(again) == descriptors(first)
    assert (tmp_path / "costs.txt").read_text() == before
    net, x = softneuro.Net(graph, first), np.random.default_rng(1).standard_normal((1, 16, 20, 20), dtype=np.float32)
    for result, expected in zip(net.run([x]), graph.reference([x]), strict=True):
        assert np.abs(result - expected).max() < 1e-3 * np.abs(expected).max()
    longer = _C.tune(graph, _C.parse_options({}), 1)
    assert longer.counts["measured"] > 0


def test_a_plan_tells_where_the_time_went(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOFTNEURO_CACHE_DIR", str(tmp_path))
    plan = _C.tune(convolutions(32), _C.parse_options({}), 1)
    assert {"enumerate", "recall", "pack", "warm up", "time conv2d", "solve", "prepare nets"} <= set(plan.stages)
    assert sum(seconds for seconds, _ in plan.stages.values()) == pytest.approx(plan.tuning_s, rel=0.01, abs=1e-3)
    assert plan.stages["pack"][1] >= plan.counts["measured"]
    warm = _C.tune(convolutions(32), _C.parse_options({}), 1)
    assert "pack" not in warm.stages
    assert "prepare nets" not in warm.stages
