"""Costs are corrected by what routines take in the running net."""

from __future__ import annotations

from pathlib import Path

import pytest

from softneuro import _C
from tests.tune.test_accuracy import convolutions, costs, descriptors

SLOW = "im2col"  # several times slower than the best on every machine


def flatter(folder: Path, seconds: float) -> None:
    """Lets a slow routine's own time be what it is not."""
    version, device, threads, signature, descriptor, _ = next(line for line in costs(folder) if SLOW in line[4])
    _C.CostDb().add(_C.CostKey(device, int(threads), signature, descriptor, version), seconds)


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
    names = {line[4] for line in costs(tmp_path) if line[3].startswith("steps of graph")}
    plans = {name for name in names if " layer " not in name}
    assert 1 <= len(plans) <= 5
    assert names == plans | {f"{plan} layer {layer}" for plan in plans for layer in (0, 1)}
