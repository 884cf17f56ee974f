"""The host's version of a region is optimised by the runtime, which has optimised the whole model before."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import helper

from softneuro import providers
from softneuro.providers.report import events
from tests.providers.conftest import check_same, cpu_session, make_model, random_feeds
from tests.providers.test_sessions import f32, i64

WIDTH, LENGTH, HEADS = 32, 8, 4


def attention() -> bytes:
    """The runtime's first pass makes Gemm with new shapes of the first product, its second of the attention's."""
    constants: dict[str, np.ndarray] = {"g": f32(WIDTH), "h": f32(WIDTH), "root": np.float32(3)}  # type: ignore[dict-item]
    nodes: list[Any] = []

    def add(op: str, inputs: list[str], output: str, **attributes: Any) -> str:
        nodes.append(helper.make_node(op, inputs, [output], **attributes))
        return output

    def linear(source: str, name: str) -> str:
        constants["w" + name], constants["b" + name] = f32(WIDTH, WIDTH), f32(WIDTH)
        return add("Add", [add("MatMul", [source, "w" + name], "m" + name), "b" + name], "r" + name)

    def heads(source: str, name: str, perm: list[int]) -> str:
        constants["s" + name] = i64(1, LENGTH, HEADS, WIDTH // HEADS)
        return add("Transpose", [add("Reshape", [source, "s" + name], "h" + name)], "t" + name, perm=perm)

    norm = add("LayerNormalization", [linear("x", "p"), "g", "h"], "norm")
    q = heads(linear(norm, "q"), "q", [0, 2, 1, 3])
    k = heads(linear(norm, "k"), "k", [0, 2, 3, 1])
    v = heads(linear(norm, "v"), "v", [0, 2, 1, 3])
    scores = add("Softmax", [add("Div", [add("MatMul", [q, k], "qk"), "root"], "scaled")], "scores")
    constants["flat"] = i64(1, LENGTH, WIDTH)
    turned = add("Transpose", [add("MatMul", [scores, v], "mixed")], "turned", perm=[0, 2, 1, 3])
    add("Add", [norm, linear(add("Reshape", [turned, "flat"], "joined"), "o")], "y")
    return make_model(nodes, {"x": [1, LENGTH, WIDTH]}, {"y": None}, constants)


def test_names_of_the_first_pass_are_free_for_the_second() -> None:
    """The comparison with the host comes to a result, whichever it is."""
    model = attention()
    ours, cpu = providers.session(model, time_budget_s=0.05), cpu_session(model)
    check_same(ours, cpu, random_feeds(cpu), 1e-4)
    told = [event["host"] for event in events(ours) if event["event"] == "prepared"]
    assert told
    assert all(reason == "" or "ms against the host's" in reason for reason in told), told
