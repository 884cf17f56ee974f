"""Models with QuantizeLinear and DequantizeLinear, and how far two right runs of them may differ."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import helper

from tests.providers.conftest import cpu_session, make_model, random_feeds, reasons, whole_session

KINDS = {"UINT8": np.uint8, "INT8": np.int8}


class Maker:
    """Nodes and constants of a model, each under the name that a method returns."""

    def __init__(self, opset: int = 18, seed: int = 0) -> None:
        self.opset = opset
        self.random = np.random.default_rng(seed)
        self.nodes: list[Any] = []
        self.constants: dict[str, np.ndarray] = {}

    def constant(self, value: Any) -> str:
        name = f"c{len(self.constants)}"
        self.constants[name] = np.asarray(value)
        return name

    def add(self, op: str, *inputs: str, outputs: int = 1, **attributes: Any) -> Any:
        names = [f"v{len(self.nodes)}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(op, list(inputs), names, **attributes))
        return names[0] if outputs == 1 else names

    def rename(self, output: str) -> None:
        """Gives the last node's output a name of the caller's."""
        self.nodes[-1].output[0] = output

    def q(self, x: str, scale: float, zero: int = 128, kind: str = "UINT8", **attributes: Any) -> str:
        parameters = [self.constant(np.float32(scale)), self.constant(KINDS[kind](zero))]
        return str(self.add("QuantizeLinear", x, *parameters, **attributes))

    def dq(self, x: str, scale: Any, zero: Any = 128, kind: str = "UINT8", **attributes: Any) -> str:
        parameters = [self.constant(np.asarray(scale, np.float32)), self.constant(np.asarray(zero, KINDS[kind]))]
        return str(self.add("DequantizeLinear", x, *parameters, **attributes))

    def qdq(self, x: str, scale: float, zero: int = 128, kind: str = "UINT8") -> str:
        return self.dq(self.q(x, scale, zero, kind), scale, zero, kind)

    def scales(self, count: int | None, about: float) -> Any:
        return np.float32(about) if count is None else (about * (0.5 + self.random.random(count))).astype(np.float32)

    def weight(self, *shape: int, axis: int | None = None, kind: str = "INT8", zero: int = 0) -> tuple[str, Any]:
        """A dequantized weight and its scales, one per index of the axis."""
        count = None if axis is None else shape[axis]
        info = np.iinfo(KINDS[kind])
        values = self.random.integers(max(info.min, -127), info.max + 1, shape).astype(KINDS[kind])
        scales = self.scales(count, 0.01)
        zeros = np.full(() if count is None else count, zero)
        named = {} if axis is None else {"axis": axis}
        return self.dq(self.constant(values), scales, zeros, kind, **named), scales

    def bias(self, count: int, x_scale: float, scales: Any) -> str:
        values = self.random.integers(-3000, 3000, count).astype(np.int32)
        both = np.asarray(np.float32(x_scale) * scales, np.float32)
        zeros = self.constant(np.zeros(both.shape, np.int32))
        axis = {"axis": 0} if both.ndim else {}
        return str(self.add("DequantizeLinear", self.constant(values), self.constant(both), zeros, **axis))

    def model(self, inputs: dict[str, Any], outputs: list[str], types: dict[str, str] | None = None) -> bytes:
        return make_model(self.nodes, inputs, dict.fromkeys(outputs), self.constants, self.opset, types)


def averages() -> bytes:
    """Averages of four bytes each, and a resize that regions leave to the host: ties tell how it computed them."""
    m = Maker()
    pooled = m.add("AveragePool", m.dq("x", 0.02), kernel_shape=[2, 2], strides=[2, 2])
    region, scales = m.constant(np.float32([0, 0, 0, 0, 1, 1, 1.5, 1])), m.constant(np.float32([1, 1, 1.7, 1.3]))
    crop = {"coordinate_transformation_mode": "tf_crop_and_resize"}  # of more than there is
    m.add("Resize", m.q(pooled, 0.02), region, scales, mode="nearest", **crop)
    m.rename("y")
    return m.model({"x": ("n", 3, "h", "w")}, ["y"], {"x": "UINT8", "y": "UINT8"})


def steps(result: np.ndarray, reference: np.ndarray, scale: float) -> np.ndarray:
    """By element, how many steps of the scale the two differ by."""
    assert result.shape == reference.shape
    assert result.dtype == reference.dtype
    return np.rint(np.abs(result.astype(np.float64) - reference.astype(np.float64)) / scale).astype(int)


def check_steps(
    model: bytes,
    scale: float,
    sizes: dict[str, int] | None = None,
    most: int = 1,
    share: float = 0.01,
    feeds: dict[str, np.ndarray] | None = None,
    **options: Any,
) -> None:
    """Every node runs through the provider, and as on the CPU provider but for some steps."""
    ours, cpu = whole_session(model, **options), cpu_session(model)
    feeds = feeds or random_feeds(cpu, sizes)
    for result, reference in zip(ours.run(None, feeds), cpu.run(None, feeds), strict=True):
        apart = steps(result, reference, scale if result.dtype == np.float32 else 1)
        assert apart.max(initial=0) <= most
        assert np.count_nonzero(apart) <= max(share * apart.size, 1)
        assert result.min() < result.max()  # there is something to compare
    assert not reasons(ours)
