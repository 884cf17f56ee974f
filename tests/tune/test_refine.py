"""Costs are corrected by what routines take in the running net."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import softneuro
from softneuro import _C
from tests.tune.records import Cost, costs, records
from tests.tune.test_accuracy import convolutions, descriptors

SLOW = "im2col"  # several times slower than the best on every machine


def flatter(folder: Path, seconds: float) -> None:
    """Lets a slow routine's own time be what it is not."""
    next(cost for cost in costs(folder) if SLOW in cost.descriptor).make_up(seconds)


def test_a_routine_that_is_slow_in_the_net_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOFTNEURO_CACHE_DIR", str(tmp_path))
    graph, options = convolutions(), _C.parse_options({})
    first = _C.tune(graph, options, 1)
    assert SLOW not in descriptors(first)
    flatter(tmp_path, first.predicted_s / 8)
    changed = _C.tune(graph, options, 1)
    assert SLOW not in descriptors(changed)
    assert changed.predicted_s > changed.lower_bound_s  # by the times that were believed
    assert changed.integrated_s > 0

    # What was seen is remembered, whether measuring is allowed or not.
    before = (tmp_path / "costs.txt").read_text()
    for mode in ("profile", "cached"):
        again = _C.tune(graph, _C.parse_options({"tune": mode}), 1)
        assert descriptors(again) == descriptors(changed)
    assert (tmp_path / "costs.txt").read_text() == before


def test_plans_are_run_a_limited_number_of_times(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOFTNEURO_CACHE_DIR", str(tmp_path))
    _C.tune(convolutions(), _C.parse_options({}), 1)
    names = {cost.descriptor for cost in costs(tmp_path) if cost.signature.startswith("steps of graph")}
    plans = {name for name in names if " layer " not in name}
    assert 1 <= len(plans) <= 5
    assert names == plans | {f"{plan} layer {layer}" for plan in plans for layer in (0, 1)}


def small() -> softneuro.Graph:
    """Two convolutions, each with routines of which one is as fast as the other."""
    rng = np.random.default_rng(0)
    graph = softneuro.Graph()
    blob = graph.input("x", (1, 3, 12, 12))
    for channels, outputs in ((3, 8), (8, 4)):
        weights = {"weight": rng.standard_normal((outputs, channels, 3, 3), dtype=np.float32)}
        blob = graph.add("conv2d", [blob], weights=weights)
    graph.output(blob)
    return graph


def wholes(folder: Path) -> list[Cost]:
    """Costs of plans that were timed as nets."""
    return [cost for cost in costs(folder) if cost.signature.startswith("graph ")]


# Exact routines alone, for the second-best plan is not to be refused for its error.
EXACT = {"max_error": "1e-7"}


def test_a_warm_start_chooses_what_was_chosen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = small()
    for run in range(12):  # often, the plan that refinement ends with is one of the best by the routines' own times
        monkeypatch.setenv("SOFTNEURO_CACHE_DIR", str(tmp_path / str(run)))
        first = _C.tune(graph, _C.parse_options(EXACT), 2)
        assert len(wholes(tmp_path / str(run))) > 1
        lines = (tmp_path / str(run) / "costs.txt").read_text().splitlines()
        timed = [line.partition(" = ")[0] for line in lines if " graph%20" in line]
        assert len(timed) == len(set(timed)), "a plan has two times"
        again = _C.tune(graph, _C.parse_options({**EXACT, "tune": "cached"}), 2)
        assert descriptors(again) == descriptors(first)
        assert again.integrated_s == first.integrated_s


def test_those_that_were_timed_decide(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where measuring is not allowed, a plan without a time is passed over, and the others' times still count."""
    graph, cached = small(), _C.parse_options({**EXACT, "tune": "cached"})
    monkeypatch.setenv("SOFTNEURO_CACHE_DIR", str(tmp_path / "all"))
    first = _C.tune(graph, _C.parse_options(EXACT), 2)
    # The slowest of the others: the one chosen may be slower than they are where its packings are smaller.
    others = [cost for cost in wholes(tmp_path / "all") if cost.seconds != pytest.approx(first.integrated_s, 1e-6)]
    slowest = max(others, key=lambda cost: cost.seconds)
    monkeypatch.setenv("SOFTNEURO_CACHE_DIR", str(tmp_path / "some"))
    for kind, key, fields in records(tmp_path / "all"):
        if (key.signature, key.descriptor) != (slowest.signature, slowest.descriptor):
            _C.CostDb().put(kind, key, fields)
    again = _C.tune(graph, cached, 2)
    assert descriptors(again) == descriptors(first)
    assert again.integrated_s == first.integrated_s


def test_a_warm_start_measures_no_further_than_time_allowed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = convolutions()
    monkeypatch.setenv("SOFTNEURO_CACHE_DIR", str(tmp_path / "enough"))
    _C.tune(graph, _C.parse_options({}), 1)
    monkeypatch.setenv("SOFTNEURO_CACHE_DIR", str(tmp_path / "short"))
    for cost in costs(tmp_path / "enough"):
        if "graph" not in cost.signature:  # all alike, so that one plan after the other would be run
            cost.make_up(1e-6)
    options = _C.parse_options({"time_budget_s": "0.02"})
    first = _C.tune(graph, options, 1)
    database = tmp_path / "short" / "costs.txt"
    before = database.read_text()
    assert "allowance%20of%20graph" in before
    again = _C.tune(graph, options, 1)
    assert descriptors(again) == descriptors(first)
    assert database.read_text() == before
    longer = _C.tune(graph, _C.parse_options({}), 1)
    steps = "steps%20of%20graph"
    assert database.read_text().count(steps) > before.count(steps)  # there was time for more
    before = database.read_text()
    again = _C.tune(graph, options, 1)
    assert descriptors(again) == descriptors(longer)  # what was measured counts, however short the time
    assert database.read_text() == before


def test_layers_costs_come_to_one_pace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is timed again, in turn with other layers' routines, takes its other tunings along."""
    monkeypatch.setenv("SOFTNEURO_CACHE_DIR", str(tmp_path))
    _C.tune(small(), _C.parse_options({}), 1)
    (tmp_path / "first").mkdir()  # where the last of each key is what is the first here
    lines = (tmp_path / "costs.txt").read_text().splitlines(keepends=True)
    (tmp_path / "first" / "costs.txt").write_text("".join(reversed(lines)))
    times: dict[tuple[str, str], list[float]] = {}
    for folder in (tmp_path / "first", tmp_path):
        for _, key, fields in records(folder, "time"):
            if key.signature.startswith("conv2d"):
                times.setdefault((key.signature, key.descriptor), []).append(fields["seconds"])
    factors: dict[tuple[str, str], list[float]] = {}
    for (signature, descriptor), (alone, in_turn) in times.items():
        factors.setdefault((signature, descriptor.split("{")[0]), []).append(in_turn / alone)
    assert any(len(alike) > 1 for alike in factors.values())
    assert len({round(factor, 6) for alike in factors.values() for factor in alike}) > 2
    for alike in factors.values():
        assert alike == pytest.approx([alike[0]] * len(alike))
