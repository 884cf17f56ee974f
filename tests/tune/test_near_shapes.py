"""Which known shapes another one's plan is carried over from."""

from __future__ import annotations

from pathlib import Path

import pytest

import softneuro
from softneuro import _C


@pytest.mark.parametrize(
    ("wanted", "known", "nearest"),
    [
        ([1, 3, 224, 224], [[8, 3, 224, 224], [1, 3, 192, 192]], 1),  # relative: 7/8 against 2/7
        ([4, 100], [[1, 100], [4, 40], [2, 100]], 2),
        ([2], [[1], [4]], 0),  # the first of equals
        ([0], [[1], [0]], 1),
        ([5, 5], [[5], [5, 5, 5]], None),  # other numbers of sizes
        ([5], [], None),
    ],
)
def test_the_nearest_in_sum(wanted: list[int], known: list[list[int]], nearest: int | None) -> None:
    assert _C.nearest_shapes(wanted, known) == nearest


def pooling(size: int) -> softneuro.Graph:
    graph = softneuro.Graph()
    x = graph.input("x", (1, 8, size, size))
    graph.output(graph.add("pool2d", [x], function="max", kernel=[2, 2], stride=[2, 2], padding=[0] * 4))
    return graph


def test_a_plan_file_may_hold_any_digits(tmp_path: Path) -> None:
    """Sizes that no integer holds are far away, and no fault."""
    path = tmp_path / "plan"
    softneuro.tune(pooling(8), {"tune": "off"}).save(str(path), pooling(8))
    (plan,) = _C.PlanFile.load(str(path)).plans
    plan.key = _C.PlanKey("another", "1x8x8x" + "9" * 400, plan.key.device, plan.key.threads)
    file = _C.PlanFile()
    file.set(plan)
    path.unlink()
    file.save(str(path))
    carried = softneuro.tune(pooling(16), {"tune": "off", "plan": str(path), "threads": plan.key.threads})
    assert carried.carried
