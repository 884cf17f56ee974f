"""Quantized weights with real activations: bytes with few scales, and MatMulNBits, against the CPU provider."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest

from softneuro import providers
from softneuro.providers.report import events
from tests.providers.conftest import check_model, check_same, cpu_session, make_model, random_feeds, whole_session
from tests.providers.quantized import Maker
from tests.providers.test_ep_context import compiled, load
from tests.providers.test_quantized_units import host_nodes

MICROSOFT = {"domain": "com.microsoft"}


def model(
    x: tuple[Any, ...],
    n: int,
    k: int,
    *,
    bits: int = 4,
    block: int = 32,
    zeros: bool = False,
    bias: bool = False,
    flat: bool = False,
    half: bool = False,
    **attributes: Any,
) -> bytes:
    m = Maker()
    blocks = -(-k // block)
    real = np.float16 if half else np.float32

    def constant(values: np.ndarray) -> str:
        return m.constant(values.reshape(-1) if flat else values)

    inputs = ["x", m.constant(m.random.integers(0, 256, (n, blocks, block * bits // 8), np.uint8))]
    inputs.append(constant(m.random.uniform(0.01, 0.02, (n, blocks)).astype(real)))
    inputs.append(constant(m.random.integers(0, 256, (n, -(-blocks * bits // 8)), np.uint8)) if zeros else "")
    inputs += ["", m.constant(m.random.standard_normal(n).astype(real)) if bias else ""]
    m.add("MatMulNBits", *inputs, K=k, N=n, bits=bits, block_size=block, **attributes, **MICROSOFT)
    m.rename("y")
    types = dict.fromkeys(("x", "y"), "FLOAT16") if half else None
    return make_model(m.nodes, {"x": x}, {"y": [*x[:-1], n]}, m.constants, 21, types)


@pytest.mark.parametrize("zeros", [False, True], ids=["middle", "zeros"])
@pytest.mark.parametrize("flat", [False, True], ids=["matrices", "lists"])
@pytest.mark.parametrize(("bits", "block", "k"), [(4, 32, 96), (4, 16, 80), (4, 128, 300), (8, 32, 96), (8, 64, 70)])
def test_blocks(bits: int, block: int, k: int, flat: bool, zeros: bool) -> None:
    """Rows are whole and ragged ones, numbers of blocks even and odd."""
    check_model(model((2, 3, k), 24, k, bits=bits, block=block, zeros=zeros, flat=flat), bound=2e-6)


def test_a_bias() -> None:
    check_model(model((1, 64), 48, 64, bias=True), bound=2e-6)


@pytest.mark.parametrize("half", [False, True], ids=["float32", "float16"])
def test_a_host_that_rounds_x_is_no_more_right(half: bool) -> None:
    """At accuracy level 4 the host's distance from the truth is a hundred times max_error."""
    data = model((3, 256), 48, 256, accuracy_level=4, half=half)
    ours = providers.session(data, time_budget_s=0.3, min_region_size=1)
    ours.run(None, random_feeds(cpu_session(data)))
    found = [event["error"] for event in events(ours) if event["event"] == "prepared" and "error" in event]
    assert found
    assert not any(found)  # of each time that it was prepared, as under load it may be again


def test_open_rows() -> None:
    check_model(model(("rows", 64), 48, 64), {"rows": 5}, bound=2e-6)


def test_halves() -> None:
    check_model(model((3, 64), 48, 64, half=True, zeros=True), bound=2e-3)


def declined(data: bytes) -> str:
    nodes = host_nodes(providers.session(data, tune="off", never_worse=False, min_region_size=1))
    return " ".join(reason for reasons in nodes.values() for reason in reasons)


def test_what_has_no_layer_stays_with_the_host() -> None:
    """Real zero points, weights that flow, two bits."""
    m = Maker()
    integers = m.random.integers(0, 256, (8, 2, 16), np.uint8)
    scales, zeros = m.constant(np.full(16, 0.02, np.float32)), m.constant(np.full(16, 7.5, np.float32))
    m.add("MatMulNBits", "x", m.constant(integers), scales, zeros, K=64, N=8, bits=4, block_size=32, **MICROSOFT)
    m.rename("y")
    assert "its input 3 is float32" in declined(make_model(m.nodes, {"x": (1, 64)}, {"y": (1, 8)}, m.constants, 21))
    m = Maker()
    m.add("MatMulNBits", "x", "w", m.constant(np.full(16, 0.02, np.float32)), K=64, N=8, block_size=32, **MICROSOFT)
    m.rename("y")
    data = make_model(m.nodes, {"x": (1, 64), "w": (8, 2, 16)}, {"y": (1, 8)}, m.constants, 21, {"w": "UINT8"})
    assert "its input 1" in declined(data)


def algorithms(session: Any) -> list[str]:
    """The algorithms of the plan's routines."""
    rows = [row for event in events(session) if event["event"] == "prepared" for row in event["layers"]]
    return [row["descriptor"].split("/")[-1].rsplit("_", 1)[0] for row in rows if row["descriptor"]]


@pytest.mark.parametrize("rows", [1, 16])
@pytest.mark.parametrize("op", ["MatMul", "Gemm"])
@pytest.mark.parametrize("channels", [False, True], ids=["tensor", "channels"])
@pytest.mark.parametrize(("kind", "zero"), [("INT8", 0), ("UINT8", 128)])
def test_bytes_stay_bytes(kind: str, zero: int, channels: bool, op: str, rows: int) -> None:
    """No copy in floats: the routine reads the model's own."""
    m = Maker()
    turned = op == "Gemm"
    axis = (0 if turned else 1) if channels else None
    w, _ = m.weight(*((40, 70) if turned else (70, 40)), axis=axis, kind=kind, zero=zero)
    if turned:
        m.add(op, "x", w, m.constant(m.random.standard_normal(40).astype(np.float32)), transB=1, alpha=0.5)
    else:
        m.add(op, "x", w)
    m.rename("y")
    model = m.model({"x": (rows, 70)}, ["y"])
    settings = onnxruntime.SessionOptions()
    settings.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL  # which rounds x to bytes
    cpu = onnxruntime.InferenceSession(model, settings, providers=["CPUExecutionProvider"])
    ours = whole_session(model)
    check_same(ours, cpu, random_feeds(cpu), 2e-6)
    assert algorithms(ours) == ["dot_int8"]


def test_compiled_model(tmp_path: Path) -> None:
    """A saved region has its blocks."""
    data = model((2, 96), 24, 96, zeros=True, bias=True)
    check_same(load(compiled(data, tmp_path)), cpu_session(data), random_feeds(cpu_session(data)), 2e-6)
