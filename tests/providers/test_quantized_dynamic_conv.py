"""Integer convolutions of what is quantized in the run, as quantize_dynamic writes them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto
from onnxruntime.quantization import QuantType, quantize_dynamic

from softneuro.providers.report import events
from tests.providers.conftest import check_same, cpu_session, random_feeds, reasons, whole_session
from tests.providers.quantized import KINDS, Maker, check_steps
from tests.providers.test_quantized_channels_last import network
from tests.providers.test_quantized_dynamic import layers
from tests.providers.test_quantized_units import host_nodes, session


def sums(m: Maker, x: list[str], *shape: int, kind: str = "UINT8", zero: int | None = None, **attributes: Any) -> str:
    least, most = (0, 255) if kind == "UINT8" else (-60, 60)  # with which the host's sums do not saturate
    values = m.constant(m.random.integers(least, most + 1, shape).astype(KINDS[kind]))
    given = [] if zero is None else [m.constant(KINDS[kind](zero))]
    return str(m.add("ConvInteger", x[0], values, x[2], *given, **attributes))


def scaled(m: Maker, x: list[str], y: str, scale: Any = 0.01, bias: int = 0) -> str:
    factor = m.add("Mul", x[1], m.constant(np.float32(scale)))
    y = m.add("Mul", m.add("Cast", y, to=TensorProto.FLOAT), factor)
    if bias:
        y = m.add("Add", y, m.constant(m.random.standard_normal((1, bias, 1, 1)).astype(np.float32)))
    return str(y)


FORMS: list[tuple[tuple[int, ...], dict[str, Any]]] = [
    ((8, 6, 3, 3), {"kind": "UINT8", "zero": 117, "pads": [1, 1, 1, 1]}),
    ((8, 6, 1, 1), {"kind": "INT8", "zero": -3}),
    ((8, 6, 3, 2), {"kind": "INT8", "strides": [2, 1], "pads": [0, 1, 2, 0]}),
    ((9, 2, 3, 3), {"kind": "UINT8", "group": 3, "zero": 128, "dilations": [2, 2]}),
    ((6, 1, 3, 3), {"kind": "INT8", "zero": 0, "group": 6, "auto_pad": "SAME_UPPER"}),
]


def test_forms() -> None:
    """Zero points of weights, groups, windows: all of one tensor, with the factor that each has."""
    m = Maker()
    x = m.add("DynamicQuantizeLinear", "x", outputs=3)
    for index, (shape, attributes) in enumerate(FORMS):
        biased = shape[0] if index % 2 else 0
        scale = m.scales(shape[0], 0.01).reshape(-1, 1, 1) if index == 1 else 0.01
        m.add("Relu", scaled(m, x, sums(m, x, *shape, **attributes), scale, biased))
        m.rename(f"y{index}")
    model = m.model({"x": ("n", 6, 9, 8)}, [f"y{index}" for index in range(len(FORMS))])
    ours, cpu = whole_session(model), cpu_session(model)
    for n in (1, 3):
        check_same(ours, cpu, random_feeds(cpu, {"n": n}, seed=n), 1e-6)
    assert not reasons(ours)
    assert set(layers(ours)) == {"dynamic_conv2d"}
    assert not any("in_floats" in layer for event in events(ours) for layer in event.get("layers", []))


def test_lists() -> None:
    """One spatial axis, and no zero point, a scale that is q's own, several readers of a factor."""
    m = Maker()
    x = m.add("DynamicQuantizeLinear", "x", outputs=3)
    m.add("Mul", x[1], m.add("Cast", sums(m, x, 4, 6, 3, pads=[1, 1]), to=TensorProto.FLOAT))
    m.rename("a")
    factor = m.add("Mul", m.constant(np.float32(0.02)), x[1])
    for name in ("b", "c"):
        m.add("Mul", factor, m.add("Cast", sums(m, x, 4, 6, 2, kind="INT8"), to=TensorProto.FLOAT))
        m.rename(name)
    model = m.model({"x": (2, 6, 10)}, ["a", "b", "c"])
    ours, cpu = whole_session(model), cpu_session(model)
    check_same(ours, cpu, random_feeds(cpu), 1e-6)
    assert layers(ours)["dynamic_conv2d"] == 3


@pytest.mark.parametrize("weights", ["QUInt8", "QInt8"])
def test_a_network(tmp_path: Path, weights: str) -> None:
    """All that quantize_dynamic makes of a convolutional network is one region."""
    (tmp_path / "plain.onnx").write_bytes(network())
    quantize_dynamic(tmp_path / "plain.onnx", tmp_path / "dynamic.onnx", weight_type=QuantType[weights])
    model = (tmp_path / "dynamic.onnx").read_bytes()
    check_steps(model, 0.02, most=2, share=0.2)
    made = session(model)
    made.run(None, random_feeds(made))
    assert layers(made)["dynamic_conv2d"] == 6


def test_other_forms_are_steps() -> None:
    """What reads sums or scales otherwise runs on the host, between two regions that stay one."""
    m = Maker()
    y = m.add("Relu", m.add("Abs", "x"))
    x = m.add("DynamicQuantizeLinear", y, outputs=3)
    total = m.add("Add", sums(m, x, 6, 6, 1, 1), sums(m, x, 6, 6, 1, 1))  # of integers
    y = m.add("Mul", m.add("Cast", total, to=TensorProto.FLOAT), m.add("Mul", x[1], m.constant(np.float32(0.01))))
    for op in ("Sigmoid", "Relu", "Abs", "Tanh", "Abs", "Relu"):
        y = m.add(op, y)
    before = "x"
    for op in ("Abs", "Sigmoid", "Tanh", "Relu", "Abs"):
        before = m.add(op, before)
    m.nodes[0].input[0] = before
    # In the order in which they depend on each other.
    m.nodes = m.nodes[-5:] + m.nodes[:-5]
    m.nodes[-1].output[0] = "y"
    model = m.model({"x": (1, 6, 5, 5)}, ["y"])
    made, cpu = session(model, min_region_size=2), cpu_session(model)
    check_same(made, cpu, random_feeds(cpu), 1e-5)
    assert not host_nodes(made)
    regions = [event for event in events(made) if event["event"] == "prepared"]
    assert len(regions) == 1
    assert layers(made)["host"] >= 3
