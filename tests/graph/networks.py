"""Random and typical networks for the tests of passes and nets."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from hypothesis import strategies as st

from softneuro._C import Graph
from softneuro.error_measure import relative_error

Array = np.ndarray[Any, Any]


@dataclass
class Network:
    """A graph together with inputs for it."""

    graph: Graph = field(default_factory=Graph)
    seed: int = 0
    arrays: list[Array] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.rng = np.random.default_rng(self.seed)

    def input(self, *shape: int) -> int:
        """Adds a graph input with normally distributed values."""
        self.arrays.append(self.values(*shape))
        return self.graph.input(f"x{len(self.arrays)}", shape)

    def values(self, *shape: int) -> Array:
        """Normally distributed float32 values."""
        return self.rng.standard_normal(shape).astype(np.float32)

    def add(self, type_: str, *inputs: int, weights: dict[str, Array] | None = None, **attrs: Any) -> int:
        """Adds a layer."""
        return self.graph.add(type_, list(inputs), weights=weights or {}, **attrs)

    def conv(self, x: int, k: int, size: int = 3, groups: int = 1, bias: bool = True, **attrs: Any) -> int:
        """Adds a convolution that keeps the variance."""
        c = self.graph.shape(x)[1]
        weights = {"weight": self.values(k, c // groups, size, size) / np.float32((c // groups) ** 0.5 * size)}
        if bias:
            weights["bias"] = self.values(k)
        return self.add("conv2d", x, weights=weights, groups=groups, **attrs)

    def linear(self, x: int, k: int, bias: bool = True) -> int:
        """Adds a linear layer that keeps the variance."""
        c = self.graph.shape(x)[-1]
        weights = {"weight": self.values(k, c) / np.float32(c**0.5)}
        if bias:
            weights["bias"] = self.values(k)
        return self.add("linear", x, weights=weights)

    def batch_norm(self, x: int) -> int:
        """Adds a batch normalisation."""
        c = self.graph.shape(x)[1]
        weights = {name: self.values(c) for name in ("weight", "bias", "mean")}
        weights["variance"] = np.abs(self.values(c)) + np.float32(0.5)
        return self.add("batch_norm", x, weights=weights, eps=1e-5)

    def act(self, x: int, function: str = "relu", **params: float) -> int:
        """Adds an activation."""
        return self.add("activation", x, function=function, **params)

    def binary(self, function: str, x: int, y: int | Array | float, **attrs: Any) -> int:
        """Adds x op y for a blob, a constant array or a scalar y."""
        if isinstance(y, np.ndarray):
            return self.add("binary", x, weights={"other": y}, function=function, **attrs)
        if isinstance(y, float):
            return self.add("binary", x, function=function, scalar=y, **attrs)
        return self.add("binary", x, y, function=function, **attrs)

    def constant(self, value: Array) -> int:
        """Adds a constant."""
        return self.add("constant", weights={"value": value})

    def types(self) -> list[str]:
        """Layer types in execution order."""
        return [layer["type"] for layer in self.graph.layers()]

    def reference(self) -> list[Array]:
        """The outputs in float64."""
        outputs: list[Array] = self.graph.reference(self.arrays)
        return outputs

    def optimized(self, *outputs: int) -> list[dict[str, Any]]:
        """Makes the blobs outputs, optimises, checks that the result is the same, and returns the layers."""
        for blob in outputs:
            self.graph.output(blob)
        before = self.reference()
        self.graph.optimize()
        for expected, got in zip(before, self.reference(), strict=True):
            assert_close(got, expected, 2e-6)
        layers: list[dict[str, Any]] = self.graph.layers()
        return layers


def assert_close(got: Array, expected: Array, tolerance: float) -> None:
    """Relative L2 error."""
    assert got.shape == expected.shape
    error = relative_error(got, expected)
    assert error <= tolerance, error


def resnet_like(seed: int = 0, batch: int = 1) -> Network:
    """Five residual blocks, one of them with a strided shortcut."""
    net = Network(seed=seed)
    x = net.input(batch, 3, 32, 32)
    x = net.act(net.batch_norm(net.conv(x, 16, bias=False, padding=[1, 1, 1, 1])))
    x = net.add("pool2d", x, function="max", kernel=[3, 3], stride=[2, 2], padding=[1, 1, 1, 1])
    for k, stride in ((16, 1), (16, 1), (32, 2), (32, 1), (32, 1)):
        y = net.conv(x, k, bias=False, padding=[1, 1, 1, 1], stride=[stride, stride])
        y = net.act(net.batch_norm(y))
        y = net.batch_norm(net.conv(y, k, bias=False, padding=[1, 1, 1, 1]))
        if stride > 1:
            x = net.batch_norm(net.conv(x, k, 1, bias=False, stride=[stride, stride]))
        x = net.act(net.binary("add", x, y))
    x = net.add("adaptive_pool2d", x, function="avg", output_size=[1, 1])
    x = net.add("reshape", x, shape=[batch, 32])
    net.graph.output(net.linear(x, 10))
    return net


def dense_block(layers: int = 4, growth: int = 16) -> Network:
    """Every layer reads the concatenation of all before it."""
    net = Network()
    features = [net.conv(net.input(1, 3, 12, 12), 32, padding=[1, 1, 1, 1])]
    for _ in range(layers):
        x = net.add("concat", *features, axis=1) if len(features) > 1 else features[0]
        x = net.act(net.batch_norm(x))
        features.append(net.conv(x, growth, padding=[1, 1, 1, 1]))
    net.graph.output(net.add("concat", *features, axis=1))
    return net


class _Grower:
    """Adds random layers that fit the blobs there are."""

    def __init__(self, draw: Any, net: Network) -> None:
        self.draw, self.net = draw, net
        batch = draw(st.integers(1, 2))
        self.blobs = [net.input(batch, draw(st.sampled_from([3, 8, 16, 24])), draw(st.integers(4, 8)), 6)]

    def pick(self, rank: int | None = None) -> int | None:
        found = [b for b in self.blobs if rank is None or len(self.net.graph.shape(b)) == rank]
        # Late blobs are likelier, so that graphs grow long as well as wide.
        return self.draw(st.sampled_from(found[-4:])) if found else None

    def alike(self, x: int, axis: int | None = None) -> list[int]:
        """Blobs of x's shape, or of its shape but for one axis."""
        shape = list(self.net.graph.shape(x))

        def key(dims: list[int]) -> list[int]:
            return [d for a, d in enumerate(dims) if a != axis]

        return [
            b
            for b in self.blobs
            if len(self.net.graph.shape(b)) == len(shape) and key(list(self.net.graph.shape(b))) == key(shape)
        ]

    def conv(self) -> int | None:
        x = self.pick(4)
        if x is None:
            return None
        _, c, h, w = self.net.graph.shape(x)
        depthwise = self.draw(st.booleans())
        k = c if depthwise else self.draw(st.sampled_from([4, 8, 16, 20, 32]))
        size = self.draw(st.sampled_from([1, 3]))
        padding = [size // 2] * 4
        if min(h, w) + 2 * (size // 2) < size:
            return None
        return self.net.conv(
            x,
            k,
            size,
            groups=c if depthwise else 1,
            bias=self.draw(st.booleans()),
            padding=padding,
            stride=[self.draw(st.integers(1, 2))] * 2,
        )

    def affine(self) -> int | None:
        x = self.pick()
        if x is None or len(self.net.graph.shape(x)) < 2:
            return None
        return self.net.batch_norm(x)

    def activation(self) -> int | None:
        x = self.pick()
        function = self.draw(st.sampled_from(["relu", "clamp", "hardswish", "sigmoid", "silu", "gelu", "leaky_relu"]))
        return None if x is None else self.net.act(x, function, a=0.0 if function == "clamp" else 0.1, b=6.0)

    def arithmetic(self) -> int | None:
        x = self.pick()
        if x is None:
            return None
        shape = self.net.graph.shape(x)
        function = self.draw(st.sampled_from(["add", "add", "sub", "mul", "max"]))
        kind = self.draw(st.sampled_from(["blob", "blob", "scalar", "channel", "constant", "gate"]))
        if kind == "blob":
            return self.net.binary(function, x, self.draw(st.sampled_from(self.alike(x))))
        if kind == "scalar":
            return self.net.binary(function, x, 0.5, reversed=int(self.draw(st.booleans())))
        if kind == "channel" and len(shape) > 1:
            return self.net.binary(function, x, self.net.values(shape[1], *[1] * (len(shape) - 2)))
        if kind == "constant":
            return self.net.binary(function, self.net.constant(self.net.values(*shape)), x)
        if kind == "gate":
            return self.net.binary("mul", x, self.net.act(x, "sigmoid"))
        return None

    def pooling(self) -> int | None:
        x = self.pick(4)
        if x is None:
            return None
        function = self.draw(st.sampled_from(["max", "avg"]))
        if self.draw(st.booleans()):
            size = self.draw(st.sampled_from([[1, 1], [2, 2], [2, 3]]))
            return self.net.add("adaptive_pool2d", x, function=function, output_size=size)
        return self.net.add("pool2d", x, function=function, kernel=[3, 3], stride=[1, 1], padding=[1, 1, 1, 1])

    def concat(self) -> int | None:
        x = self.pick(4)
        if x is None:
            return None
        axis = self.draw(st.integers(0, 3))
        parts = self.draw(st.lists(st.sampled_from(self.alike(x, axis)), min_size=1, max_size=3))
        return self.net.add("concat", *parts, axis=axis)

    def slicing(self) -> int | None:
        x = self.pick()
        if x is None or not self.net.graph.shape(x):
            return None
        shape = self.net.graph.shape(x)
        axis = self.draw(st.integers(0, len(shape) - 1))
        start = self.draw(st.integers(0, shape[axis] - 1))
        end = self.draw(st.integers(start + 1, shape[axis]))
        return self.net.add("slice", x, axis=axis, start=start, end=end, step=self.draw(st.integers(1, 2)))

    def moving(self) -> int | None:
        x = self.pick()
        if x is None:
            return None
        shape = self.net.graph.shape(x)
        if self.draw(st.booleans()):
            perm = self.draw(st.permutations(range(len(shape))))
            return self.net.add("transpose", x, perm=list(perm))
        flat = [shape[0], int(np.prod(shape[1:]))] if shape else [1]
        return self.net.add("reshape", x, shape=flat)

    def padding(self) -> int | None:
        x = self.pick(4)
        if x is None:
            return None
        pads = [0, 0, *[self.draw(st.integers(0, 1)) for _ in range(2)]] * 2
        return self.net.add("pad", x, mode="constant", pads=pads, value=self.draw(st.sampled_from([0.0, 1.0])))

    def reduce(self) -> int | None:
        x = self.pick(4)
        function = self.draw(st.sampled_from(["mean", "amax"]))
        keepdim = int(self.draw(st.booleans()))
        return None if x is None else self.net.add("reduce", x, function=function, axes=[2, 3], keepdim=keepdim)

    def linear(self) -> int | None:
        x = self.pick(2)
        return None if x is None else self.net.linear(x, self.draw(st.sampled_from([5, 16])))


@st.composite
def networks(draw: Any) -> Network:
    """Random graphs of up to a dozen layers."""
    net = Network(seed=draw(st.integers(0, 1000)))
    grow = _Grower(draw, net)
    kinds = [grow.conv, grow.conv, grow.affine, grow.activation, grow.arithmetic, grow.arithmetic, grow.pooling]
    kinds += [grow.concat, grow.slicing, grow.moving, grow.padding, grow.reduce, grow.linear]
    for _ in range(draw(st.integers(1, 12))):
        blob = draw(st.sampled_from(kinds))()
        if blob is not None and 0 < np.prod(net.graph.shape(blob)) < 20000:
            grow.blobs.append(blob)
    for blob in {grow.blobs[-1], draw(st.sampled_from(grow.blobs))}:
        net.graph.output(blob)
    return net


def image(c: int = 8, h: int = 6, w: int = 6, n: int = 1) -> tuple[Network, int]:
    """A network with one image as input."""
    net = Network()
    return net, net.input(n, c, h, w)
