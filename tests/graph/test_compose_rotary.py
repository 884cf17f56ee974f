"""Rotary embedding spelt out becomes one layer, in either order of operands, with constant and computed angles."""

from __future__ import annotations

import itertools

import pytest

from tests.graph.networks import Network

SHAPE = (2, 3, 5, 8)


def turned(net: Network, x: int, size: int = 4) -> int:
    first = net.add("slice", x, axis=3, start=0, end=size)
    second = net.add("slice", x, axis=3, start=size, end=8)
    return net.add("concat", net.binary("mul", second, -1.0), first, axis=3)


def operand(net: Network, shape: tuple[int, ...], constant: bool) -> int:
    return net.constant(net.values(*shape)) if constant else net.input(*shape)


@pytest.mark.parametrize(("constant", "first", "sum_first"), list(itertools.product([False, True], repeat=3)))
@pytest.mark.parametrize("shape", [(5, 8), (2, 1, 5, 8), (1, 1, 5, 8)])
def test_forms(constant: bool, first: bool, sum_first: bool, shape: tuple[int, ...]) -> None:
    net = Network()
    x = net.input(*SHAPE)
    cosine, sine = (operand(net, shape, constant) for _ in range(2))
    straight = net.binary("mul", cosine, x) if first else net.binary("mul", x, cosine)
    other = net.binary("mul", turned(net, x), sine)
    net.optimized(net.binary("add", other, straight) if sum_first else net.binary("add", straight, other))
    assert net.types().count("rotary") == 1
    assert not {"binary", "concat", "slice"} & set(net.types())


@pytest.mark.parametrize("odd", ["uneven", "another", "no rows"])
def test_others_stay(odd: str) -> None:
    net = Network()
    x = net.input(*SHAPE)
    source = net.input(*SHAPE) if odd == "another" else x
    angles = [net.input(5, 1 if odd == "no rows" else 8) for _ in range(2)]
    other = net.binary("mul", turned(net, source, 3 if odd == "uneven" else 4), angles[1])
    net.optimized(net.binary("add", net.binary("mul", x, angles[0]), other))
    assert "rotary" not in net.types()
