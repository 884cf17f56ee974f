"""What follows from open sizes alone is computed ahead of a run, whatever its rank: positions and their angles."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import helper

from softneuro import providers
from tests.providers.conftest import check_same, cpu_session, make_model, random_feeds, reasons
from tests.providers.test_sessions import i64

node = helper.make_node
LENGTH = [
    node("Shape", ["x"], ["s"]),
    node("Gather", ["s", "one"], ["n"], axis=0),
    node("Range", ["zero", "n", "step"], ["r"]),
]
NUMBERS = {
    "zero": np.int64(0),
    "one": np.int64(1),
    "step": np.int64(1),
    "last": i64(-1),
    "factors": np.float32([[0.5, 0.25]]),
}


@pytest.mark.parametrize("real", [True, False])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_joined_along_an_axis(axis: int, real: bool) -> None:
    """Two matrices [n, 2] of the positions, one of them twice, are [n, 6] or [3n, 2] together."""
    kind = 1 if real else 7
    nodes = [
        *LENGTH,
        node("Unsqueeze", ["r", "last"], ["column"]),
        node("Cast", ["column"], ["reals"], to=1),
        node("Mul", ["reals", "factors"], ["angles"]),
        node("Cast", ["angles"], ["a"], to=kind),
        node("Add", ["angles", "reals"], ["others"]),
        node("Cast", ["others"], ["b"], to=kind),
        node("Concat", ["a", "b", "a"], ["joined"], axis=axis),
        node("Reshape", ["joined", "rows"], ["lines"]),
        node("Cast", ["lines"], ["factor"], to=1),
        node("Mul", ["x", "factor"], ["m"]),
        node("Sigmoid", ["m"], ["y"]),
    ]
    model = make_model(nodes, {"x": ("b", "n", 6)}, {"y": None}, {**NUMBERS, "rows": i64(-1, 6)})
    ours, cpu = providers.session(model, tune="off", never_worse=False, min_region_size=1), cpu_session(model)
    for sizes in ({"b": 2, "n": 5}, {"b": 1, "n": 3}):
        check_same(ours, cpu, random_feeds(cpu, sizes))
    assert not reasons(ours)
