"""Bytes that are bounded between Q and DQ, by numbers that are bytes or reals: in integers, and as the host has it."""

from __future__ import annotations

import numpy as np
import pytest

from softneuro.providers.report import events
from tests.providers.conftest import cpu_session, random_feeds
from tests.providers.quantized import KINDS, Maker, check_steps
from tests.providers.test_quantized_units import host_nodes, session


def conv(m: Maker, x: str, *shape: int) -> str:
    """A convolution with weights with which the host's sums do not saturate, on whatever CPU."""
    return str(m.add("Conv", x, m.dq(m.constant(m.random.integers(-60, 61, shape).astype(np.int8)), 0.01, 0, "INT8")))


def bounded(kind: str) -> tuple[bytes, list[str]]:
    """Convolutions and plain inputs, each bounded in another way; some results are bytes."""
    m = Maker(20)
    zero = 120 if kind == "UINT8" else -9
    least, most = (m.constant(KINDS[kind](v)) for v in ((90, 140) if kind == "UINT8" else (-40, 11)))
    x = m.dq(m.q("x", 0.02, zero, kind), 0.02, zero, kind)
    ways = [
        ("Clip", [least, most]),
        ("Clip", [least]),
        ("Clip", ["", most]),
        ("Max", [least]),
        ("Min", [most]),
        *([("Relu", [])] if kind == "INT8" else []),
    ]
    outputs = []
    for op, bounds in ways:
        for y in (conv(m, x, 8, 3, 3, 3), "x"):
            b = m.add(op, m.q(y, 0.05, zero, kind), *bounds)
            m.dq(b, 0.05, zero, kind)
            m.rename(f"y{len(outputs)}")
            outputs.append(f"y{len(outputs)}")
    return m.model({"x": (1, 3, 9, 8)}, outputs), outputs


@pytest.mark.parametrize("kind", ["UINT8", "INT8"])
def test_bounds_that_are_bytes(kind: str) -> None:
    model, outputs = bounded(kind)
    check_steps(model, 0.05, share=0.002)
    made = session(model)
    made.run(outputs[::2], random_feeds(made))
    layers = [layer for event in events(made) for layer in event.get("layers", []) if event["event"] == "prepared"]
    # A bound of what a convolution makes is part of it, and otherwise a table or a quantization of its own.
    assert sum(layer["type"] == "conv2d" for layer in layers) == len(outputs) // 2
    assert sum(layer["type"] == "activation" for layer in layers) == len(outputs) // 2
    assert not any("in_floats" in layer for layer in layers if layer["type"] == "activation")


def test_numbers_beyond_all_bounds() -> None:
    m = Maker(20)
    m.dq(m.add("Clip", m.q("x", 0.05, 100), m.constant(np.uint8(90)), m.constant(np.uint8(200))), 0.05, 100)
    m.rename("y")
    x = np.float32([[np.inf, -np.inf, 1e30, -1e30, 0, 3]])
    check_steps(m.model({"x": x.shape}, ["y"]), 0.05, most=0, feeds={"x": x})


def test_bounds_on_and_off_the_grid() -> None:
    """In floats between DQ and Q: numbers that steps are, and others, one of them a tie."""
    m = Maker(20)
    x = m.qdq("x", 0.02, 120)
    outputs = []
    for least, most in [(-0.5, 1.0), (-0.5, 0.98), (-0.512, 0.975), (-9.0, 0.3), (-0.13, 9.0)]:
        bounds = [m.constant(np.float32(least)), m.constant(np.float32(most))]
        for y in (conv(m, x, 8, 3, 3, 3), x):
            m.qdq(m.add("Clip", y, *bounds), 0.05, 100)
            m.rename(f"y{len(outputs)}")
            outputs.append(f"y{len(outputs)}")
    check_steps(m.model({"x": (1, 3, 9, 8)}, outputs), 0.05, share=0.002)


def test_bytes_with_unequal_scales() -> None:
    """What compares or joins them as they are is not for us."""
    m = Maker(20)
    a, b = m.q("x", 0.02, 120), m.q("x", 0.03, 110)
    for op, attributes in (("Max", {}), ("Concat", {"axis": 1})):
        m.dq(m.add(op, a, b, **attributes), 0.02, 120)
        m.rename(op)
    model = m.model({"x": (1, 3, 9, 8)}, ["Max", "Concat"])
    made, cpu = session(model), cpu_session(model)
    feeds = random_feeds(cpu)
    for result, reference in zip(made.run(None, feeds), cpu.run(None, feeds), strict=True):
        np.testing.assert_array_equal(result, reference)
    kept = host_nodes(made)
    assert any("another scale" in reason for reason in kept["Max"])
    assert any("another scale" in reason for reason in kept["Concat"])


def test_bytes_with_equal_scales() -> None:
    m = Maker(20)
    a, b = m.q("x", 0.02, 120), m.q("z", 0.02, 120)
    for op in ("Max", "Min"):
        m.dq(m.add(op, a, b), 0.02, 120)
        m.rename(op)
    check_steps(m.model(dict.fromkeys("xz", (1, 3, 9, 8)), ["Max", "Min"]), 0.02, most=0)
