"""Reshapes that keep rows move behind what works on each row alike, and meet each other there."""

from __future__ import annotations

import pytest

from tests.graph.networks import Network


def started(*shape: int) -> tuple[Network, int, int]:
    net = Network()
    x = net.input(2, 3, 8)
    return net, x, net.add("reshape", x, shape=list(shape or (6, 8)))


def test_a_bias_behind_a_product_of_other_axes() -> None:
    net, _, y = started()
    y = net.add("reshape", net.linear(y, 5), shape=[2, 3, 5])
    layers = net.optimized(net.binary("mul", net.binary("add", y, net.values(5)), net.values(1, 1, 5)))
    assert net.types() == ["linear"]
    assert layers[0]["weights"] == {"weight": (5, 8), "bias": (5,)}


def test_a_residual_behind_it() -> None:
    net, x, y = started()
    y = net.add("reshape", net.act(net.linear(y, 8), "gelu"), shape=[2, 3, 8])
    net.optimized(net.binary("add", y, x))
    assert "reshape" not in net.types()


@pytest.mark.parametrize("other", ["scalar", "row", "column", "one", "blob"])
def test_operands(other: str) -> None:
    net, x, y = started()
    if other == "scalar":
        y = net.binary("mul", y, 0.5)
    elif other == "row":
        y = net.binary("mul", y, net.values(1, 8))
    elif other == "blob":
        sums = net.add("reduce", x, function="sum", axes=[2], keepdim=1)
        y = net.binary("mul", y, net.add("reshape", sums, shape=[6, 1]))
    elif other == "one":
        one = net.add("reduce", x, function="sum", axes=[0, 1, 2], keepdim=1)
        y = net.binary("mul", y, net.add("reshape", one, shape=[1, 1]))
    else:
        y = net.binary("mul", y, net.values(6, 1))
    net.optimized(net.add("reshape", y, shape=[2, 3, 8]))
    assert net.types().count("reshape") == {"column": 2, "one": 1}.get(other, 0)


def test_several_readers() -> None:
    net, _, y = started()
    net.optimized(net.linear(y, 5), net.add("softmax", y, axis=0))
    assert sorted(net.types()) == ["linear", "reshape", "reshape", "softmax"]


def test_rows_of_another_size_stay() -> None:
    net, _, y = started(4, 12)
    net.optimized(net.add("reshape", net.linear(y, 8), shape=[2, 2, 8]))
    assert net.types() == ["reshape", "linear", "reshape"]


def test_a_result_that_grows() -> None:
    net, _, y = started()
    net.optimized(net.binary("add", y, net.values(3, 1, 8)))
    assert net.types() == ["reshape", "binary"]
