"""What is known of one set of weights is not taken for true of another."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import softneuro
from softneuro import _C
from tests.tune.records import costs, records

INEXACT = re.compile(r"/(winograd|bf16x|strassen|fused_winograd)")


def network(seed: int, cancels: bool = False) -> softneuro.Graph:
    """A 3x3 convolution and a 1x1 one, whose outputs are small differences of large sums where `cancels`."""
    rng = np.random.default_rng(seed)
    first = rng.standard_normal((64, 64, 3, 3), dtype=np.float32) / 24
    second = rng.standard_normal((64, 64, 1, 1), dtype=np.float32) / 8
    if cancels:
        first[1::2] = first[::2] * (1 + 1e-4 * rng.standard_normal(first[::2].shape, dtype=np.float32))
        second[:, 1::2] = -second[:, ::2]
    graph = softneuro.Graph()
    blob = graph.add("conv2d", [graph.input("x", (1, 64, 40, 40))], weights={"weight": first}, padding=[1] * 4)
    graph.output(graph.add("conv2d", [blob], weights={"weight": second}))
    return graph


def descriptors(plan: softneuro.Plan) -> list[str]:
    return [layer.descriptor for layer in plan.layers]


def is_exact(plan: softneuro.Plan) -> bool:
    return not any(INEXACT.search(descriptor) for descriptor in descriptors(plan))


def errors() -> dict[tuple[str, str], float]:
    """What the database knows, by graph with weights and by plan."""
    found = records(Path(_C.CostDb.default_directory()), "error")
    return {(record.key.signature, record.key.descriptor): record.fields["error"] for record in found}


@pytest.fixture
def inexact_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> softneuro.Plan:
    """The plan of a network that was tuned in a database where inexact routines are the fastest by far."""
    monkeypatch.setenv("SOFTNEURO_CACHE_DIR", str(tmp_path))
    options = _C.parse_options({"max_memory": "100"})
    _C.tune(network(0), options, 1)
    make_inexact_fast()
    plan = _C.tune(network(0), options, 1)
    assert not is_exact(plan)
    return plan


def make_inexact_fast() -> None:
    for cost in costs(Path(_C.CostDb.default_directory())):
        if INEXACT.search(cost.descriptor):
            cost.make_up(1e-9)


def tune(graph: softneuro.Graph, **options: str) -> softneuro.Plan:
    return _C.tune(graph, _C.parse_options({"max_memory": "100", **options}), 1)


def test_every_set_of_weights_has_an_error_of_its_own(inexact_first: softneuro.Plan) -> None:
    known = errors()
    same = tune(network(0))
    assert descriptors(same) == descriptors(inexact_first)
    assert errors() == known  # nothing was run

    others = tune(network(1))
    assert descriptors(others) == descriptors(inexact_first)
    assert len(errors()) > len(known)

    known = errors()
    cancelling = tune(network(2, cancels=True))
    fresh = {key: error for key, error in errors().items() if key not in known}
    assert max(fresh.values()) > 5e-5  # what was good for other weights
    assert descriptors(cancelling) != descriptors(inexact_first)
    assert is_exact(cancelling) or any(error <= 5e-5 for error in fresh.values())
    assert descriptors(tune(network(0))) == descriptors(inexact_first)


def test_what_measures_nothing_runs_unknown_weights_exactly(inexact_first: softneuro.Plan, tmp_path: Path) -> None:
    before = (tmp_path / "costs.txt").read_text()
    assert descriptors(tune(network(0), tune="cached")) == descriptors(inexact_first)
    for mode in ("cached", "off"):
        plan = tune(network(1), tune=mode)
        assert is_exact(plan)
        assert plan.counts["measured"] == 0
    assert (tmp_path / "costs.txt").read_text() == before


def test_a_plan_file_has_the_errors_that_were_measured(
    inexact_first: softneuro.Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "plan.txt"
    tune(network(0), plan=str(file))
    assert re.search(r"\nerror [0-9a-f]{32} ", file.read_text())
    monkeypatch.setenv("SOFTNEURO_CACHE_DIR", str(tmp_path / "other"))
    for mode in ("off", "cached"):
        assert descriptors(tune(network(0), plan=str(file), tune=mode)) == descriptors(inexact_first)
        assert is_exact(tune(network(1), plan=str(file), tune=mode))
    # Two runs tell the error of weights that the file does not know.
    assert descriptors(tune(network(1), plan=str(file))) == descriptors(inexact_first)
    assert len(errors()) == 1
    assert is_exact(tune(network(1), plan=str(file), tune="off"))
    assert descriptors(tune(network(1), plan=str(file), tune="cached")) == descriptors(inexact_first)


def test_weights_that_are_nan_do_no_harm(inexact_first: softneuro.Plan) -> None:
    graph = network(3)
    rng = np.random.default_rng(3)
    first = rng.standard_normal((64, 64, 3, 3), dtype=np.float32)
    first[5, 7, 1, 1] = np.nan
    graph = softneuro.Graph()
    blob = graph.add("conv2d", [graph.input("x", (1, 64, 40, 40))], weights={"weight": first}, padding=[1] * 4)
    second = rng.standard_normal((64, 64, 1, 1), dtype=np.float32)
    graph.output(graph.add("conv2d", [blob], weights={"weight": second}))
    assert len(descriptors(tune(graph))) == 2
    assert descriptors(tune(network(0))) == descriptors(inexact_first)


def test_a_budget_too_small_to_measure_errors_leaves_exact_routines(inexact_first: softneuro.Plan) -> None:
    assert is_exact(tune(network(4), time_budget_s="1e-9"))


LEARN = """
import sys
from tests.tune.test_other_weights import is_exact, network, tune
cancels = sys.argv[1] == "cancels"
for seed in range(10, 14):
    print(is_exact(tune(network(seed + 10 * cancels, cancels))))
"""


def test_two_processes_learn_errors_of_two_checkpoints_at_once(inexact_first: softneuro.Plan, tmp_path: Path) -> None:
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    words = [sys.executable, "-c", LEARN]
    learners = [
        subprocess.Popen([*words, kind], env=env, stdout=subprocess.PIPE, text=True) for kind in ("plain", "cancels")
    ]
    plain, cancelling = (learner.communicate()[0].split() for learner in learners)
    assert [learner.returncode for learner in learners] == [0, 0]
    assert plain == ["False"] * 4
    known = errors()
    # Nothing was lost of either: what comes later measures nothing.
    for seed in range(10, 14):
        assert descriptors(tune(network(seed), tune="cached")) == descriptors(inexact_first)
        assert str(is_exact(tune(network(seed + 10, cancels=True)))) == cancelling[seed - 10]
    assert errors() == known
