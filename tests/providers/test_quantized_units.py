"""What the host computes as one, DQ, op and Q, is taken whole or not at all; and what crosses a border are bytes."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

from softneuro import providers
from softneuro.providers.report import events
from tests.providers.conftest import cpu_session, random_feeds, reasons
from tests.providers.quantized import Maker, averages, steps


def session(model: bytes, **options: Any) -> Any:
    return providers.session(model, **{"tune": "off", "never_worse": False, "min_region_size": 1, **options})


def host_nodes(made: Any) -> dict[str, list[str]]:
    """By op, why its nodes stay with the host."""
    nodes: dict[str, list[str]] = {}
    for event in events(made):
        if event["event"] == "partition":
            for node in event["host"]:
                nodes.setdefault(node["op"], []).append(node["reason"])
    return nodes


def regions(made: Any) -> list[str]:
    """Inputs of the regions that have been prepared."""
    return [event["inputs"] for event in events(made) if event["event"] == "prepared"]


def agree(made: Any, model: bytes, scale: float) -> None:
    cpu = cpu_session(model)
    feeds = random_feeds(cpu)
    apart = steps(made.run(None, feeds)[0], cpu.run(None, feeds)[0], scale)
    assert apart.max() <= 1


def conv(m: Maker, x: str, *shape: int) -> str:
    w, _ = m.weight(*shape, axis=0)
    return str(m.add("Conv", x, w))


@pytest.mark.exact_host
def test_an_op_of_the_host_keeps_what_quantizes_around_it() -> None:
    m = Maker()
    c = m.qdq(conv(m, m.qdq("x", 0.02), 4, 3, 3, 3), 0.05)
    n = m.qdq(m.add("LpNormalization", c, axis=1), 0.01, 0)
    m.qdq(conv(m, n, 5, 4, 3, 3), 0.05)
    m.rename("y")
    model = m.model({"x": (1, 3, 9, 8)}, ["y"])
    made = session(model)
    assert {op: len(nodes) for op, nodes in host_nodes(made).items()} == {
        "LpNormalization": 1,
        "DequantizeLinear": 1,
        "QuantizeLinear": 1,
    }
    agree(made, model, 0.05)
    # Weights are with their convolution, and bytes come from the host.
    assert sorted(regions(made)) == ["1x3x9x8", "1x4x7x6 uint8"]


def test_a_redundant_relu_stays_with_its_op() -> None:
    m = Maker()
    n = m.add("Relu", m.add("LpNormalization", m.qdq("x", 0.02), axis=1))
    m.qdq(conv(m, m.qdq(n, 0.01, 0), 5, 4, 3, 3), 0.05)
    m.rename("y")
    made = session(m.model({"x": (1, 4, 9, 8)}, ["y"]))
    assert host_nodes(made)["Relu"] == ["the op before it stays with the host"]


def test_quantized_to_more_bits() -> None:
    """The convolution before stays, too, and what comes after it does not."""
    m = Maker(opset=21)
    c = conv(m, m.qdq("x", 0.02), 4, 3, 3, 3)
    parameters = [m.constant(np.float32(1e-3)), m.constant(np.uint16(1000))]
    wide = m.add("DequantizeLinear", m.add("QuantizeLinear", c, *parameters), *parameters)
    m.add("Sigmoid", m.add("Relu", wide))
    m.rename("y")
    model = m.model({"x": (1, 3, 9, 8)}, ["y"])
    made = session(model)
    kept = host_nodes(made)
    assert kept["Conv"] == ["what quantizes its result stays with the host"]
    assert any("uint16" in reason for reason in kept["QuantizeLinear"])
    assert "Sigmoid" not in kept
    agree(made, model, 1e-3)


def test_weights_of_four_bits() -> None:
    m = Maker(opset=21)
    m.nodes.append(helper.make_node("DequantizeLinear", ["w", "s"], ["d"], axis=0, block_size=16))
    m.constants["s"] = (0.1 + m.random.random((2, 6))).astype(np.float32)
    m.add("Relu", m.add("MatMul", "x", "d"))
    m.rename("y")
    model = onnx.load_from_string(m.model({"x": (3, 32), "w": (32, 6)}, ["y"], {"w": "INT4"}))
    values = m.random.integers(0, 256, 96).astype(np.uint8).tobytes()
    model.graph.initializer.append(helper.make_tensor("w", TensorProto.INT4, (32, 6), values, raw=True))
    del model.graph.input[1]
    made = session(model.SerializeToString())
    kept = host_nodes(made)
    assert kept["MatMul"] == ["what dequantizes an operand stays with the host"]
    assert kept["DequantizeLinear"] == ["'w' is int4"]
    agree(made, model.SerializeToString(), 1e-4)


def test_what_quantizes_is_no_work() -> None:
    m = Maker()
    m.qdq(conv(m, m.qdq("x", 0.02), 4, 3, 3, 3), 0.05)
    m.rename("y")
    made = session(m.model({"x": (1, 3, 9, 8)}, ["y"]), min_region_size=2)
    assert host_nodes(made)["Conv"] == ["its region has 1 op(s), fewer than min_region_size=2"]


def test_bytes_whose_scale_nobody_tells() -> None:
    m = Maker()
    m.add("MaxPool", "x", kernel_shape=[2, 2])
    m.rename("y")
    model = m.model({"x": (1, 3, 9, 8)}, ["y"], {"x": "UINT8", "y": "UINT8"})
    made = session(model)
    assert host_nodes(made)["MaxPool"] == ["its input 0 is uint8"]
    agree(made, model, 1)


@pytest.mark.exact_host
def test_bytes_that_are_read_as_integers() -> None:
    """Beside what dequantizes them, which the region has."""
    m = Maker()
    q = m.q(conv(m, m.qdq("x", 0.02), 4, 3, 3, 3), 0.05)
    m.add("Relu", m.dq(q, 0.05))
    m.rename("y")
    m.add("Cast", q, to=TensorProto.FLOAT)
    m.rename("z")
    model = m.model({"x": (1, 3, 9, 8)}, ["y", "z"])
    made = session(model)
    assert host_nodes(made) == {"Cast": ["its input 0 is uint8 with a scale"]}
    agree(made, model, 0.05)
    feeds = random_feeds(cpu_session(model))
    np.testing.assert_array_equal(made.run(None, feeds)[1], cpu_session(model).run(None, feeds)[1])


def test_moved_bytes_between_ops_of_the_host() -> None:
    """No op of the region would tell what they mean."""
    m = Maker()
    n = m.q(m.add("LpNormalization", "x", axis=1), 0.01)
    m.add("LpNormalization", m.dq(m.add("MaxPool", n, kernel_shape=[2, 2]), 0.01), axis=1)
    m.rename("y")
    model = m.model({"x": (1, 4, 9, 8)}, ["y"])
    made = session(model)
    assert host_nodes(made)["MaxPool"] == ["no op of its region tells the scale of its bytes"]
    agree(made, model, 1e-6)


def test_a_region_that_the_host_runs_is_fused_there() -> None:
    """Averages that are ties tell whether it is."""
    model = averages()
    made, cpu = session(model), cpu_session(model)
    settings = onnxruntime.SessionOptions()
    settings.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    plain = onnxruntime.InferenceSession(model, settings, providers=["CPUExecutionProvider"])
    feeds = random_feeds(cpu, {"n": 1, "h": 14, "w": 18})
    result, host, apart = (one.run(None, feeds)[0] for one in (made, cpu, plain))
    assert reasons(made)
    np.testing.assert_array_equal(result, host)
    assert np.any(host != apart)


@pytest.mark.exact_host
@pytest.mark.parametrize("batch", [2, "n"])
def test_constant_bytes_beside_others(batch: int | str) -> None:
    m = Maker()
    quantized = m.q(conv(m, m.dq("x", 0.02, 0), 4, 8, 1, 1), 0.05, 90)
    constant = m.constant(np.arange(32, dtype=np.uint8).reshape(2, 1, 4, 4))
    m.dq(m.add("Concat", quantized, constant, axis=1), 0.05, 90)
    m.rename("y")
    model = m.model({"x": (batch, 8, 4, 4)}, ["y"], {"x": "UINT8"})
    made, cpu = session(model), cpu_session(model)
    feeds = random_feeds(cpu, {"n": 2})
    assert steps(made.run(None, feeds)[0], cpu.run(None, feeds)[0], 0.05).max() <= 1
    assert not host_nodes(made)
    assert not reasons(made)


@pytest.mark.exact_host
def test_explain_says_what_computes_with_floats() -> None:
    m = Maker()
    c = m.qdq(conv(m, m.qdq("x", 0.02), 4, 3, 3, 3), 0.05)
    m.qdq(m.add("Softmax", c, axis=1), 1 / 255, 0)
    m.rename("y")
    model = m.model({"x": (1, 3, 9, 8)}, ["y"])
    made = session(model)
    agree(made, model, 1 / 255)
    lines = [line for line in providers.explain(made).splitlines() if "in floats" in line and "softmax" in line]
    assert [line.split("; ")[-1] for line in lines] == [
        "in floats: no routine of softmax reads bytes and writes floats"
    ]


def test_what_has_weights_or_not_takes_bytes() -> None:
    m = Maker()
    w, _ = m.weight(3, 8, 3, 3, axis=1)
    up = m.add("ConvTranspose", m.qdq("x", 0.02), w, strides=[2, 2], pads=[1, 1, 1, 1], output_padding=[1, 1])
    up = m.qdq(up, 0.05)
    m.qdq(m.add("MatMul", up, m.qdq(m.add("Transpose", up, perm=[0, 1, 3, 2]), 0.05)), 0.3)
    m.rename("y")
    model = m.model({"x": (1, 3, 9, 8)}, ["y"])
    made = session(model)
    agree(made, model, 0.3)
    text = providers.explain(made)
    assert "in floats" not in text
    assert "conv_transpose2d/cpu:qint8" in text
    assert "matmul/cpu:qint8" in text
