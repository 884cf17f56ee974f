"""Which fusions are chosen, by costs that are made up."""

from __future__ import annotations

from pathlib import Path

import pytest

from softneuro import _C
from tests.tune.test_accuracy import costs
from tests.tune.test_fusions import inverted_residual


@pytest.mark.parametrize(("dearer", "runs"), [(1.1, True), (1.5, False)])
def test_a_fusion_that_is_hardly_dearer_by_itself_is_run_in_a_net(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dearer: float, runs: bool
) -> None:
    """What it saves there shows in no routine's own time."""
    graph, options = inverted_residual(), _C.parse_options({"max_error": "1e-7"})
    folder = tmp_path / "made_up"

    def make_up(entry: tuple[str, ...], seconds: float) -> None:
        version, device, threads, signature, descriptor, _ = entry
        _C.CostDb().add(_C.CostKey(device, int(threads), signature, descriptor, version), 1e-3 * seconds)

    def steps() -> list[tuple[str, ...]]:
        return [line for line in costs(folder) if line[3].startswith("steps of graph")]

    monkeypatch.setenv("SOFTNEURO_CACHE_DIR", str(tmp_path / "measured"))
    _C.tune(graph, options, 1)
    monkeypatch.setenv("SOFTNEURO_CACHE_DIR", str(folder))
    for entry in costs(tmp_path / "measured"):
        if "graph" not in entry[3]:
            whole = "expand_weight" in entry[3] and "project_weight" in entry[3]
            kind = entry[4].split("/")[0]
            make_up(entry, 3 * dearer if whole else {"conv2d": 1, "adapt": 1e-9}.get(kind, 9))
    _C.tune(graph, options, 1)  # runs the layers' own routines, whose real times are then replaced
    for entry in steps():
        make_up(entry, 1 if " layer " in entry[4] else 3)
    _C.tune(graph, options, 1)
    names = {entry[4] for entry in steps()}
    layers = [sum(name.startswith(f"{plan} layer ") for name in names) for plan in names if " layer " not in plan]
    assert (1 in layers) == runs


@pytest.mark.parametrize(("threads", "dearer_us"), [(1, 0.3), (2, 0.3), (2, 30)])
def test_what_steps_pass_on_is_not_for_nothing_where_cores_may_be_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, threads: int, dearer_us: float
) -> None:
    """The blobs within the fusion are 230 KB, for which it may be 2.3 us dearer where there are two threads."""
    graph = inverted_residual()
    options = {mode: _C.parse_options({"max_error": "1e-7", "tune": mode}) for mode in ("profile", "cached")}
    monkeypatch.setenv("SOFTNEURO_CACHE_DIR", str(tmp_path / "measured"))
    _C.tune(graph, options["profile"], threads)
    monkeypatch.setenv("SOFTNEURO_CACHE_DIR", str(tmp_path / "made_up"))
    for version, device, count, signature, descriptor, _ in costs(tmp_path / "measured"):
        if "graph" not in signature:
            whole = "expand_weight" in signature and "project_weight" in signature
            kind = descriptor.split("/")[0]
            own = {"conv2d": 1e-7, "adapt": 1e-12}.get(kind, 9e-3)
            seconds = 3e-7 + 1e-6 * dearer_us if whole else own
            _C.CostDb().add(_C.CostKey(device, int(count), signature, descriptor, version), seconds)
    plan = _C.tune(graph, options["cached"], threads)
    fused = not plan.layers[0].descriptor
    assert fused == (threads == 2 and dearer_us < 2 and _C.cores_may_be_apart())
    assert plan.lower_bound_s <= plan.predicted_s
