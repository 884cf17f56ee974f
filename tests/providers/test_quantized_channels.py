"""Activations with a scale for each channel, as NNCF has them in front of depthwise convolutions."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime
import pytest

from softneuro import providers
from tests.providers.conftest import random_feeds
from tests.providers.quantized import KINDS, Maker, steps

OUT = 0.05


def cpu_session(model: bytes) -> Any:
    """Op by op: what the CPU provider fuses of such convolutions fails when it runs."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def parameters(m: Maker, count: int, zeros: str, kind: str) -> list[str]:
    center = 120 if kind == "UINT8" else 3
    spread = m.random.integers(-9, 9, count) if zeros == "several" else np.zeros(count)
    scales = (0.02 * (0.5 + m.random.random(count))).astype(np.float32)
    return [m.constant(scales), m.constant((center + spread).astype(KINDS[kind]))]


def qdq(m: Maker, x: str, count: int, zeros: str = "one", kind: str = "UINT8", **axis: int) -> str:
    both = parameters(m, count, zeros, kind)
    return str(m.add("DequantizeLinear", m.add("QuantizeLinear", x, *both, **axis), *both, **axis))


def check(model: bytes, feeds: dict[str, np.ndarray] | None = None, scale: float = OUT, **options: Any) -> str:
    """One region has all, and differs by single steps. What explain tells."""
    made = providers.session(model, **{"tune": "off", "never_worse": False, "min_region_size": 1, **options})
    cpu = cpu_session(model)
    feeds = feeds or random_feeds(cpu)
    apart = steps(made.run(None, feeds)[0], cpu.run(None, feeds)[0], scale)
    assert apart.max() <= 1
    assert np.count_nonzero(apart) <= 0.01 * apart.size + 1
    text = str(providers.explain(made))
    assert text.count("region ") == 1, text
    return text


def block(between: str, zeros: str, kind: str, multiplier: int = 1) -> bytes:
    """A pointwise convolution, perhaps something behind it, and a depthwise one of channels with their own scales."""
    m = Maker()
    w, _ = m.weight(6, 4, 1, 1, axis=0)
    y = m.add("Conv", m.qdq("x", 0.02), w)
    if between:
        y = m.add(between, y)
    y = qdq(m, y, 6, zeros, kind)
    w, scales = m.weight(6 * multiplier, 1, 3, 3, axis=0)
    y = m.add("Conv", y, w, m.bias(6 * multiplier, 0.02, scales), group=6, pads=[1, 1, 1, 1])
    m.qdq(y, OUT)
    m.rename("y")
    return m.model({"x": (2, 4, 9, 8)}, ["y"])


@pytest.mark.parametrize("kind", ["UINT8", "INT8"])
@pytest.mark.parametrize("zeros", ["one", "several"])
@pytest.mark.parametrize("between", ["", "Relu", "HardSwish"])
def test_depthwise(between: str, zeros: str, kind: str) -> None:
    text = check(block(between, zeros, kind))
    # Zeros around an image are bytes only if they are the same for all channels.
    assert ("in floats" in text) == (zeros == "several")
    factors_are_in_weights = zeros == "one" and between != "HardSwish"
    assert ("binary/" in text) != factors_are_in_weights


def test_several_outputs_of_a_channel() -> None:
    text = check(block("Relu", "one", "UINT8", multiplier=2))
    assert "binary/" not in text
    assert "the weights are not quantized" not in text


def test_tuned() -> None:
    text = check(block("Relu", "one", "UINT8"), tune="profile", time_budget_s=0.5)
    assert "binary/" not in text


def test_others_read_the_channels_too() -> None:
    m = Maker()
    y = qdq(m, "x", 6)
    w, _ = m.weight(6, 1, 3, 3, axis=0)
    depthwise = m.add("Conv", y, w, group=6, pads=[1, 1, 1, 1])
    w, _ = m.weight(6, 6, 1, 1, axis=0)
    m.qdq(m.add("Add", depthwise, m.add("Conv", y, w)), OUT)
    m.rename("y")
    check(m.model({"x": (1, 6, 9, 8)}, ["y"]))


@pytest.mark.parametrize(("shape", "axis"), [((3, 5), 0), ((3, 5), -1), ((2, 3, 5), 1), ((2, 3, 5), 2)])
@pytest.mark.parametrize("zeros", ["one", "several"])
def test_axes(shape: tuple[int, ...], axis: int, zeros: str) -> None:
    m = Maker()
    y = m.add("Sigmoid", qdq(m, m.add("Neg", "x"), shape[axis], zeros, axis=axis))
    m.qdq(y, 1 / 256, 0)
    m.rename("y")
    check(m.model({"x": shape}, ["y"]), scale=1 / 256)


def test_moved_between_q_and_dq() -> None:
    """Each has its own axis."""
    m = Maker()
    both = parameters(m, 3, "one", "UINT8")
    bytes_ = m.add("Transpose", m.add("QuantizeLinear", "x", *both, axis=1), perm=[0, 2, 1])
    m.qdq(m.add("DequantizeLinear", bytes_, *both, axis=2), OUT)
    m.rename("y")
    check(m.model({"x": (2, 3, 5)}, ["y"]))


def test_bytes_at_borders() -> None:
    m = Maker()
    both = parameters(m, 3, "several", "INT8")
    m.add("QuantizeLinear", m.add("Neg", m.add("DequantizeLinear", "x", *both)), *both)
    m.rename("y")
    model = m.model({"x": (2, 3, 5)}, ["y"], {"x": "INT8", "y": "INT8"})
    made = providers.session(model, tune="off", never_worse=False, min_region_size=1)
    feeds = {"x": m.random.integers(-128, 128, (2, 3, 5)).astype(np.int8)}
    ours, theirs = made.run(None, feeds)[0], cpu_session(model).run(None, feeds)[0]
    assert np.abs(ours.astype(int) - theirs.astype(int)).max() <= 1
    assert (ours != theirs).mean() <= 0.1


def test_a_scale_whose_inverse_is_infinite() -> None:
    m = Maker()
    both = [m.constant(np.float32([1e-40, 0.02, 0.03])), m.constant(np.uint8([0, 0, 0]))]
    m.add("Relu", m.add("DequantizeLinear", m.add("QuantizeLinear", "x", *both), *both))
    m.rename("y")
    model = m.model({"x": (2, 3, 5)}, ["y"])
    made, cpu = providers.session(model, tune="off", never_worse=False, min_region_size=1), cpu_session(model)
    feeds = random_feeds(cpu)
    np.testing.assert_array_equal(made.run(None, feeds)[0], cpu.run(None, feeds)[0])
    assert "its scale is" in providers.explain(made)
