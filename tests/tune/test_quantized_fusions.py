"""Layers and the quantization of their outputs as one, and functions of one byte as a table: the same bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import softneuro
from softneuro import _C

BYTES = "cpu:qint8:nhwc"
FLOATS = "cpu:float32:nhwc"
ISA = next(isa for isa in _C.available_isas() if isa in ("avx512", "avx2", "neon", "scalar"))


def steps(scale: float, zero_point: int) -> dict[str, Any]:
    return {"quantize": {"scale": scale, "zero_point": zero_point}}


def hardswish_graph(tap: bool = False, other_scale: bool = False) -> softneuro.Graph:
    """A convolution, and its quantized output times the quantized hardsigmoid of it; `tap` asks for that, too."""
    rng = np.random.default_rng(0)
    graph = softneuro.Graph()
    x = graph.input("x", (2, 5, 9, 7), BYTES, {"scale": 0.03, "zero_point": 120})
    values = rng.integers(-127, 128, (12, 5, 3, 3)).astype(np.int8)
    weight = (values, {"scale": 0.004, "least": -128, "most": 127})
    conv = graph.add("conv2d", [x], weights={"weight": weight}, padding=[1] * 4)
    q = graph.add("quantize", [conv], post=steps(0.037, 101))
    gate = graph.add("activation", [q], function="hardsigmoid")
    gate = graph.add("quantize", [gate], post=steps(1 / 255, 0))
    product = graph.add("binary", [q, gate], function="mul")
    graph.output(graph.add("quantize", [product], post=steps(0.02, 20)), BYTES)
    if tap:
        graph.output(gate, BYTES)
    if other_scale:
        graph.output(q, BYTES)
    return graph


PARTS = [
    f"conv2d/{BYTES}->{FLOATS}/int8_{ISA}{{rows=64,split=0}}",
    f"quantize/{FLOATS}->{BYTES}/convert_{ISA}",
    "",
    f"activation/{BYTES}/table",
    "",
    f"binary/{BYTES}/bytes_{ISA}",
]
CONV = f"conv2d/{BYTES}/int8_{ISA}{{rows=64,split=0}}"
TABLE = f"look_up/{BYTES}/table"


def run(graph: softneuro.Graph, plan: Any) -> list[np.ndarray[Any, Any]]:
    net = softneuro.Net(graph, plan, threads=2)
    x = np.random.default_rng(1).integers(0, 256, (2, 5, 9, 7)).astype(np.uint8)
    return net.run([np.ascontiguousarray(x)])


def test_fused_layers_have_the_same_bits() -> None:
    graph = hardswish_graph()
    (expected,) = run(graph, PARTS)
    for plan in (
        [CONV if i == 1 else "" if i == 0 else part for i, part in enumerate(PARTS)],
        ["", CONV, "", "", "", TABLE],
    ):
        (actual,) = run(graph, plan)
        # A table is exact where arithmetic in float32 may take the other side of a tie.
        assert np.abs(actual.astype(int) - expected.astype(int)).max() <= (1 if TABLE in plan else 0)
        assert (actual != expected).mean() < 0.01


@pytest.mark.parametrize("tune", ["off", "profile"])
def test_a_tuned_plan_is_right(tune: str) -> None:
    graph = hardswish_graph()
    plan = _C.tune(graph, _C.parse_options({"tune": tune, "time_budget_s": "2"}), 2)
    (expected,), (actual,) = run(graph, PARTS), run(graph, plan)
    assert np.abs(actual.astype(int) - expected.astype(int)).max() <= 1
    assert (actual != expected).mean() < 0.01


@pytest.mark.parametrize("tap", ["tap", "other_scale"])
def test_what_others_read_is_not_left_out(tap: str) -> None:
    graph = hardswish_graph(**{tap: True})
    plan = ["", CONV, "", "", "", TABLE]
    if tap == "tap":
        with pytest.raises(softneuro.Error, match="no look_up ends here"):
            run(graph, plan)
    else:
        result, between = run(graph, plan)
        assert result.shape == between.shape


def residual_graph(relu: bool) -> softneuro.Graph:
    """A quantized convolution, quantized, plus its input, quantized."""
    rng = np.random.default_rng(0)
    graph = softneuro.Graph()
    x = graph.input("x", (2, 24, 9, 7), BYTES, {"scale": 0.03, "zero_point": 120})
    values = rng.integers(-127, 128, (24, 24, 3, 3)).astype(np.int8)
    weight = (values, {"scale": 0.0007, "least": -128, "most": 127})
    bias = rng.standard_normal(24).astype(np.float32)
    conv = graph.add("conv2d", [x], weights={"weight": weight, "bias": bias}, padding=[1] * 4)
    q = graph.add("quantize", [conv], post=steps(0.0231, 77))
    total = graph.add("binary", [q, x], function="add", post={"activation": "relu"} if relu else {})
    graph.output(graph.add("quantize", [total], post=steps(0.0411, 60)), BYTES)
    return graph


@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize(
    "isa",
    [e["isa"] for e in softneuro.registry() if e["available"] and e["descriptor"] == f"conv2d/{BYTES}/int8_{e['isa']}"],
)
def test_a_sum_with_what_was_quantized(isa: str, relu: bool) -> None:
    graph = residual_graph(relu)
    conv = CONV.replace(f"int8_{ISA}", f"int8_{isa}")
    net = softneuro.Net(graph, ["", "", "", conv], threads=2)
    x = np.random.default_rng(1).integers(0, 256, (2, 24, 9, 7)).astype(np.uint8)
    x = np.ascontiguousarray(x)
    (actual,) = net.run([x])
    (exact,) = graph.reference([(x.astype(np.float32) - 120) * np.float32(0.03)])
    off = np.abs((actual.astype(np.float64) - 60) * 0.0411 - exact) / 0.0411
    assert off.max() < 1.01
    assert (off > 0.01).mean() < 0.001, "steps off that are no ties"
    parts = ["", conv, "", f"binary/{BYTES}/bytes_{ISA}"]
    (separate,) = softneuro.Net(graph, parts, threads=2).run([x])
    assert (actual != separate).mean() < 0.001


def test_a_quantized_blob_is_a_residual() -> None:
    """As PyTorch exports it: only the sum is quantized."""
    graph = softneuro.Graph()
    x = graph.input("x", (1, 16, 6, 5), BYTES, {"scale": 0.03, "zero_point": 120})
    values = np.random.default_rng(0).integers(-127, 128, (16, 16, 3, 3)).astype(np.int8)
    weight = (values, {"scale": 0.0007, "least": -128, "most": 127})
    conv = graph.add("conv2d", [x], weights={"weight": weight}, padding=[1] * 4)
    total = graph.add("activation", [graph.add("binary", [conv, x], function="add")], function="relu")
    graph.output(graph.add("quantize", [total], post=steps(0.0411, 60)), BYTES)
    graph.optimize()
    assert [layer["type"] for layer in graph.layers()] == ["conv2d", "quantize"]
    assert graph.layers()[0]["residual"]
    x8 = np.random.default_rng(1).integers(0, 256, (1, 16, 6, 5)).astype(np.uint8)
    (actual,) = softneuro.Net(graph, ["", CONV]).run([x8])
    (exact,) = graph.reference([(x8.astype(np.float32) - 120) * np.float32(0.03)])
    np.testing.assert_allclose((actual.astype(np.float64) - 60) * 0.0411, exact, atol=1e-5)
