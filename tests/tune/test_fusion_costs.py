"""Which fusions are chosen, by costs that are made up."""

from __future__ import annotations

from pathlib import Path

import pytest

from softneuro import _C
from tests.tune.records import Cost, costs
from tests.tune.test_fusions import inverted_residual


@pytest.mark.parametrize(("dearer", "runs"), [(1.1, True), (1.5, False)])
def test_a_fusion_that_is_hardly_dearer_by_itself_is_run_in_a_net(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dearer: float, runs: bool
) -> None:
    """What it saves there shows in no routine's own time."""
    graph, options = inverted_residual(), _C.parse_options({"max_error": "1e-7"})
    folder = tmp_path / "made_up"

    def steps() -> list[Cost]:
        return [cost for cost in costs(folder) if cost.signature.startswith("steps of graph")]

    monkeypatch.setenv("SOFTNEURO_CACHE_DIR", str(tmp_path / "measured"))
    _C.tune(graph, options, 1)
    monkeypatch.setenv("SOFTNEURO_CACHE_DIR", str(folder))
    for cost in costs(tmp_path / "measured"):
        if "graph" not in cost.signature:
            whole = "expand_weight" in cost.signature and "project_weight" in cost.signature
            kind = cost.descriptor.split("/")[0]
            cost.make_up(1e-3 * (3 * dearer if whole else {"conv2d": 1, "adapt": 1e-9}.get(kind, 9)))
    _C.tune(graph, options, 1)  # runs the layers' own routines, whose real times are then replaced
    for cost in steps():
        cost.make_up(1e-3 if " layer " in cost.descriptor else 3e-3)
    _C.tune(graph, options, 1)
    names = {cost.descriptor for cost in steps()}
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
    for cost in costs(tmp_path / "measured"):
        if "graph" not in cost.signature:
            whole = "expand_weight" in cost.signature and "project_weight" in cost.signature
            own = {"conv2d": 1e-7, "adapt": 1e-12}.get(cost.descriptor.split("/")[0], 9e-3)
            cost.make_up(3e-7 + 1e-6 * dearer_us if whole else own)
    plan = _C.tune(graph, options["cached"], threads)
    fused = not plan.layers[0].descriptor
    assert fused == (threads == 2 and dearer_us < 2 and _C.cores_may_be_apart())
    assert plan.lower_bound_s <= plan.predicted_s
