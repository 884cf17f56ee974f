"""Ops whose results nobody reads, as graph surgery leaves them: as if they were not there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper

from softneuro import providers
from softneuro.providers.report import events
from tests.providers.conftest import check_same, cpu_session, make_model, random_feeds, reasons
from tests.providers.quantized import Maker, steps
from tests.providers.test_ep_context import compiled, load
from tests.providers.test_sessions import f32

node = helper.make_node
X = {"x": ("n", 3, 12, 12)}
WEIGHTS = {"w": f32(8, 3, 3, 3), "v": f32(4, 4, seed=1), "u": f32(8, 8, 1, 1, seed=2)}
TRUNK = [node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1], name="conv"), node("Relu", ["c"], ["y"], name="relu")]
# A product and its rectifier behind an op that the host keeps.
BEHIND_HOST = [
    node("NonZero", ["c"], ["z"]), node("Cast", ["z"], ["f"], to=1), node("MatMul", ["v", "f"], ["d"]),
    node("Relu", ["d"], ["e"]),
]  # fmt: skip
INSIDE = [node("Conv", ["y", "u"], ["d"]), node("Tanh", ["d"], ["e"]), node("Sigmoid", ["c"], ["s"])]
FEEDS_HOST = [node("Conv", ["y", "u"], ["d"]), node("NonZero", ["d"], ["z"])]
ALL = [*BEHIND_HOST, node("Conv", ["y", "u"], ["d2"]), node("Tanh", ["d2"], ["e2"]), node("NonZero", ["e2"], ["z2"])]


def model(more: list[Any], n: int | str = "n") -> bytes:
    return make_model([*TRUNK, *more], {"x": (n, 3, 12, 12)}, {"y": None}, WEIGHTS)


def level(value: Any) -> onnxruntime.SessionOptions:
    settings = onnxruntime.SessionOptions()
    settings.graph_optimization_level = value
    return settings


LEVELS = onnxruntime.GraphOptimizationLevel


@pytest.mark.parametrize("optimised", [True, False])
@pytest.mark.parametrize("more", [BEHIND_HOST, INSIDE, FEEDS_HOST, ALL], ids=["host", "inside", "feeds", "all"])
def test_branches(more: list[Any], optimised: bool) -> None:
    settings = level(LEVELS.ORT_ENABLE_ALL if optimised else LEVELS.ORT_DISABLE_ALL)
    ours, cpu = providers.session(model(more), settings, tune="off", min_region_size=1), cpu_session(model(more))
    check_same(ours, cpu, random_feeds(cpu, {"n": 2}))
    assert not reasons(ours)
    (prepared,) = [event for event in events(ours) if event["event"] == "prepared"]
    assert more is not INSIDE or len(prepared["layers"]) == 1  # the convolution with its rectifier
    told = {row["op"]: row["reason"] for row in events(ours)[0]["host"]}
    assert not {"relu", "conv"} & {row["name"] for row in events(ours)[0]["host"]}
    assert more is not BEHIND_HOST or told["MatMul"] == "nobody reads what it makes"


def test_compiled_models(tmp_path: Path) -> None:
    for more in (BEHIND_HOST, INSIDE):
        ours, cpu = load(compiled(model(more, 2), tmp_path)), cpu_session(model(more, 2))
        check_same(ours, cpu, random_feeds(cpu))
        assert not reasons(ours)


def test_nothing_is_read() -> None:
    """A model whose one output is made by the host alone."""
    made = make_model([*TRUNK, node("NonZero", ["x"], ["z"])], X, {"z": None}, WEIGHTS, types={"z": "INT64"})
    ours, cpu = providers.session(made, tune="off", min_region_size=1), cpu_session(made)
    check_same(ours, cpu, random_feeds(cpu, {"n": 1}))
    assert events(ours)[0]["claimed"] == 0
    assert {row["reason"] for row in events(ours)[0]["host"] if row["op"] != "NonZero"} == {
        "nobody reads what it makes"
    }


def test_bodies() -> None:
    """An If has a branch with a dead branch of its own, and a Loop a condition that is read alone."""
    info = helper.make_tensor_value_info

    def body(name: str, nodes: list[Any]) -> Any:
        return helper.make_graph(nodes, name, [], [info(f"{name}_y", TensorProto.FLOAT, None)])

    dead = [node("Conv", ["c", "u"], ["d"]), node("NonZero", ["d"], ["z"]), node("Cast", ["z"], ["f"], to=1),
            node("MatMul", ["v", "f"], ["g"]), node("Relu", ["g"], ["h"])]  # fmt: skip
    then = body("then", [node("Conv", ["c", "u"], ["t"]), node("Relu", ["t"], ["then_y"]), *dead])
    other = body("else", [node("Tanh", ["c"], ["else_y"])])
    nodes = [*TRUNK[:1], *dead[1:], node("If", ["k"], ["y"], then_branch=then, else_branch=other)]
    nodes[1] = node("NonZero", ["c"], ["z"])
    made = make_model(nodes, {**X, "k": ()}, {"y": None}, WEIGHTS, types={"k": "BOOL"})
    ours, cpu = providers.session(made, tune="off", min_region_size=1), cpu_session(made)
    for k in (True, False):
        check_same(ours, cpu, {"x": f32(1, 3, 12, 12), "k": np.array(k)})
    assert not reasons(ours)


def test_outputs_of_one_op() -> None:
    """Some of them: of a Split, and indices, masks and statistics that would not be computed."""
    nodes = [
        node("MaxPool", ["x"], ["p", "indices"], kernel_shape=[2, 2], strides=[2, 2]),
        node("Split", ["p"], ["a", "unread", "b"], axis=1, num_outputs=3),
        node("Dropout", ["a"], ["k", "mask"]),
        node("LayerNormalization", ["b", "g"], ["l", "mean", "deviation"], axis=-1),
        node("Add", ["k", "l"], ["y"]),
    ]
    made = make_model(nodes, X, {"y": None}, {"g": f32(6)})
    for settings in (level(LEVELS.ORT_ENABLE_ALL), level(LEVELS.ORT_DISABLE_ALL)):
        ours, cpu = providers.session(made, settings, tune="off", min_region_size=1), cpu_session(made)
        check_same(ours, cpu, random_feeds(cpu, {"n": 2}))
        assert events(ours)[0]["claimed"] == events(ours)[0]["nodes"]
        assert not reasons(ours)


def test_quantized_pairs() -> None:
    """A Q and a DQ that nobody reads, behind an op of the unit and behind its Q."""
    m = Maker()
    w, scales = m.weight(8, 16, 3, 3, axis=0)
    conv = m.add("Conv", m.qdq("x", 0.02), w, m.bias(8, 0.02, scales), pads=[1, 1, 1, 1])
    relu = m.add("Relu", conv)
    m.qdq(conv, 0.07)
    y = m.qdq(relu, 0.05)
    m.add("NonZero", y)
    m.add("Identity", y)
    m.rename("y")
    made = m.model({"x": (1, 16, 12, 12)}, ["y"])
    x = {"x": f32(1, 16, 12, 12)}
    ours = providers.session(made, tune="off", never_worse=False, min_region_size=1)
    apart = steps(ours.run(None, x)[0], cpu_session(made).run(None, x)[0], 0.05)
    assert apart.max() <= 1
    assert not reasons(ours)
