"""GELU and swish that are spelt out in arithmetic become activations, and near misses do not."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from tests.graph.networks import Network

ROOT = math.sqrt(2 / math.pi)


def cubic(net: Network, x: int, factor: float = 0.044715) -> int:
    inner = net.binary("add", x, net.binary("mul", net.binary("pow", x, 3.0), factor))
    return net.act(net.binary("mul", inner, ROOT), "tanh")


def factored(net: Network, x: int) -> int:
    inner = net.binary("mul", net.binary("mul", net.binary("mul", x, 0.044715), x), 1.0)
    inner = net.binary("add", inner, 1.0)
    return net.act(net.binary("mul", net.binary("mul", x, ROOT), inner), "tanh")


def products(net: Network, x: int) -> int:
    cube = net.binary("mul", net.binary("mul", x, x), x)
    inner = net.binary("add", net.binary("mul", cube, 0.044715), x)
    return net.act(net.binary("div", inner, 1 / ROOT), "tanh")


def error(net: Network, x: int) -> int:
    return net.act(net.binary("div", x, math.sqrt(2)), "erf")


def error_of_product(net: Network, x: int) -> int:
    return net.act(net.binary("mul", x, net.constant(np.float32([math.sqrt(0.5)]))), "erf")


Part = Callable[[Network, int], int]
WHOLE: dict[str, Callable[[Network, int, int], int]] = {
    "half of x": lambda net, x, gate: net.binary("mul", net.binary("mul", x, 0.5), gate),
    "half of the gate": lambda net, x, gate: net.binary("mul", x, net.binary("mul", gate, 0.5)),
    "half of all": lambda net, x, gate: net.binary("div", net.binary("mul", gate, x), 2.0),
    "in two steps": lambda net, x, gate: net.binary("mul", net.binary("mul", net.binary("mul", x, 0.25), gate), 2.0),
}
GATES: dict[str, tuple[str, Part]] = {
    "cubic": ("gelu_tanh", cubic),
    "factored": ("gelu_tanh", factored),
    "products": ("gelu_tanh", products),
    "error": ("gelu", error),
    "error of a product": ("gelu", error_of_product),
}


def functions(net: Network, *outputs: int) -> list[str]:
    layers = net.optimized(*outputs)
    return [layer["attrs"].get("function", "") for layer in layers if layer["type"] == "activation"]


def source() -> tuple[Network, int]:
    net = Network()
    return net, net.act(net.input(2, 7, 5), "mish")


@pytest.mark.parametrize("whole", WHOLE)
@pytest.mark.parametrize("gate", GATES)
def test_gelu(gate: str, whole: str) -> None:
    net, x = source()
    name, part = GATES[gate]
    assert functions(net, WHOLE[whole](net, x, net.binary("add", part(net, x), 1.0))) == ["mish", name]
    assert net.types() == ["activation"] * 2


@pytest.mark.parametrize("kind", [np.float16, np.float32])
def test_constants_as_their_type_has_them(kind: type[np.floating]) -> None:
    net, x = source()
    inner = net.binary("add", x, net.binary("mul", net.binary("pow", x, 3.0), float(kind(0.044715))))
    gate = net.act(net.binary("mul", inner, float(kind(ROOT))), "tanh")
    net.graph.output(WHOLE["half of x"](net, x, net.binary("add", gate, 1.0)))
    net.graph.optimize()
    assert net.types() == ["activation"] * 2


@pytest.mark.parametrize("a", [1.702, 1.0, 0.5, -1.0])
def test_swish(a: float) -> None:
    net, x = source()
    y = net.binary("mul", net.act(net.binary("mul", x, a), "sigmoid"), x)
    assert functions(net, y) == ["mish", "silu" if a == 1 else "swish"]


def test_mish() -> None:
    net, x = source()
    y = net.act(net.input(2, 7, 5), "exp")
    outputs = [net.binary("mul", net.act(net.act(one, "softplus"), "tanh"), x) for one in (x, y)]
    assert sorted(functions(net, *outputs)) == ["exp", "mish", "mish", "softplus", "tanh"]


def test_gates_of_feed_forward_layers() -> None:
    """A product with something else is none of the activation's."""
    net, x = source()
    y = net.act(net.input(2, 7, 5), "exp")
    outputs = [net.binary("mul", net.binary("mul", x, net.act(x, "sigmoid")), y)]
    outputs.append(net.binary("mul", y, WHOLE["half of x"](net, x, net.binary("add", cubic(net, x), 1.0))))
    assert sorted(functions(net, *outputs)) == ["exp", "gelu_tanh", "mish", "silu"]
    assert net.types().count("binary") == 2


def half(gate: Part, one: float = 1.0, share: float = 0.5) -> Part:
    return lambda net, x: net.binary("mul", net.binary("mul", x, share), net.binary("add", gate(net, x), one))


def of_another(net: Network, x: int) -> int:
    return half(lambda net, _: error(net, net.act(x, "exp")))(net, x)


def with_square(net: Network, x: int) -> int:
    return net.act(net.binary("mul", net.binary("add", x, net.binary("pow", x, 2.0)), ROOT), "tanh")


def without_cube(net: Network, x: int) -> int:
    return net.act(net.binary("mul", x, ROOT), "tanh")


NEAR: dict[str, Part] = {
    "another factor of the cube": half(lambda net, x: cubic(net, x, 0.05)),
    "another share": half(cubic, share=0.25),
    "another offset": half(cubic, one=2.0),
    "another's error function": of_another,
    "a square": half(with_square),
    "no cube": half(without_cube),
    "a shifted sigmoid": lambda net, x: net.binary("mul", x, net.act(net.binary("add", x, 1.0), "sigmoid")),
    "a share of swish": lambda net, x: net.binary("mul", net.binary("mul", x, 0.5), net.act(x, "sigmoid")),
}


@pytest.mark.parametrize("name", NEAR)
def test_near_misses(name: str) -> None:
    net, x = source()
    found = functions(net, NEAR[name](net, x))
    assert not {"gelu", "gelu_tanh", "silu", "swish"} & set(found)


@pytest.mark.parametrize("wanted", ["gate", "inner"])
def test_a_part_that_is_wanted(wanted: str) -> None:
    net, x = source()
    inner = net.binary("mul", x, 1.702)
    gate = net.act(inner, "sigmoid")
    assert "swish" not in functions(net, net.binary("mul", x, gate), gate if wanted == "gate" else inner)
