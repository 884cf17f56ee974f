"""Ops that layers compute for some shapes only: the host computes them for the others, and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from onnx import helper

from softneuro import providers
from softneuro.providers.report import events
from tests.providers.conftest import check_same, cpu_session, make_model, random_feeds, reasons
from tests.providers.test_sessions import f32, i64

node = helper.make_node
SCALES = np.array([1, 1, 1.5, 1.5], np.float32)
REGION = np.array([0, 0, 0, 0, 1, 1, 1.5, 1], np.float32)  # more than there is
CROP = {"coordinate_transformation_mode": "tf_crop_and_resize"}
OPS: dict[str, tuple[Any, dict[str, np.ndarray]]] = {
    "nearest, outside": (node("Resize", ["a", "r", "s"], ["b"], **CROP), {"r": REGION, "s": SCALES}),
    "reflected and cropped": (node("Pad", ["a", "p"], ["b"], mode="reflect"), {"p": i64(0, 0, 2, -2, 0, 0, 2, -2)}),
    "wrapped and cropped": (node("Pad", ["a", "p"], ["b"], mode="wrap"), {"p": i64(0, 0, 2, -2, 0, 0, 2, -2)}),
}


def model_of(op: Any, constants: dict[str, np.ndarray], shape: Sequence[int | str], last: bool = False) -> bytes:
    """Convolutions before the op and, unless it is the last, behind it."""
    nodes = [node("Conv", ["x", "w"], ["c"]), node("Relu", ["c"], ["d"]), node("Conv", ["d", "w"], ["a"]), op]
    if last:
        nodes.append(node("Atan", ["b"], ["y"]))
    else:
        nodes += [node("Conv", ["b", "w"], ["e"]), node("Relu", ["e"], ["f"]), node("Conv", ["f", "w"], ["y"])]
    return make_model(nodes, {"x": shape}, {"y": None}, {"w": f32(4, 4, 3, 3), **constants}, opset=19)


def partition(session: Any) -> Any:
    return next(event for event in events(session) if event["event"] == "partition")


@pytest.mark.parametrize("op", OPS)
def test_fixed_shapes(op: str) -> None:
    """It is known ahead: a step inside the region, or left alone behind it."""
    for last in (False, True):
        model = model_of(*OPS[op], shape=(1, 4, 20, 22), last=last)
        ours, cpu = providers.session(model, tune="off"), cpu_session(model)
        check_same(ours, cpu, random_feeds(cpu))
        told = partition(ours)
        assert [row["op"] for row in told["steps"]] == ([] if last else [OPS[op][0].op_type])
        assert [row["op"] for row in told["host"]] == ([OPS[op][0].op_type, "Atan"] if last else [])
        assert not reasons(ours)


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("last", [False, True])
def test_open_shapes(op: str, last: bool) -> None:
    """It is known at the run."""
    model = model_of(*OPS[op], shape=("n", 4, "h", "w"), last=last)
    ours, cpu = providers.session(model, tune="off", never_worse=False), cpu_session(model)
    for sizes in ({"n": 1, "h": 20, "w": 22}, {"n": 2, "h": 17, "w": 19}):
        check_same(ours, cpu, random_feeds(cpu, sizes))
    assert not reasons(ours)
    layers = [layer["type"] for event in events(ours) if event["event"] == "prepared" for layer in event["layers"]]
    assert layers.count("host") == 2


def test_what_the_host_refuses_is_refused() -> None:
    """At the run, with its message."""
    op = node("Pad", ["a", "p"], ["b"], mode="reflect")
    model = model_of(op, {"p": i64(0, 0, 0, 0, 0, 0, 0, 9)}, shape=("n", 4, "h", "w"))
    ours, cpu = providers.session(model, tune="off"), cpu_session(model)
    check_same(ours, cpu, random_feeds(cpu, {"n": 1, "h": 20, "w": 22}))
    feeds = random_feeds(cpu, {"n": 1, "h": 20, "w": 11})
    with pytest.raises(Exception, match=r"[Rr]eflect"):
        cpu.run(None, feeds)
    with pytest.raises(Exception, match=r"[Rr]eflect"):
        ours.run(None, feeds)
