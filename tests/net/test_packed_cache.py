"""Packed weights are shared by content, and kept by nets alone."""

from __future__ import annotations

import gc

import numpy as np
import numpy.typing as npt
import pytest

from softneuro._C import Graph, Net

RNG = np.random.default_rng(0)
WEIGHT = RNG.standard_normal((64, 32, 3, 3), dtype=np.float32)
STATISTICS = {role: RNG.random(64, dtype=np.float32) + 0.5 for role in ("weight", "bias", "mean", "variance")}


def graph(size: int, weight: npt.NDArray[np.float32] = WEIGHT, batch: int = 1) -> Graph:
    built = Graph()
    x = built.input("x", (batch, 32, size, size))
    y = built.add("conv2d", [x], weights={"weight": weight}, padding=[1, 1, 1, 1])
    built.output(built.add("batch_norm", [y], weights=STATISTICS, eps=1e-5))
    built.optimize()
    return built


@pytest.fixture
def before() -> int:
    gc.collect()
    return Net.shared_packed_bytes()


def test_shapes_of_one_model_share(before: int) -> None:
    nets = [Net(graph(8))]
    one = Net.shared_packed_bytes() - before
    assert one == nets[0].stats["packed_bytes"] >= WEIGHT.nbytes
    # Folded weights are computed anew for each, from copies of what they are computed from.
    nets += [Net(graph(12, WEIGHT.copy())), Net(graph(5, batch=3)), Net(graph(8), threads=2)]
    assert Net.shared_packed_bytes() - before == one
    del nets[0]
    assert Net.shared_packed_bytes() - before == one
    nets.clear()
    assert Net.shared_packed_bytes() == before


def test_other_weights_do_not_share(before: int) -> None:
    first = Net(graph(8))
    one = Net.shared_packed_bytes() - before
    changed = WEIGHT.copy()
    changed[5, 4, 1, 1] = np.nextafter(changed[5, 4, 1, 1], np.float32(9))
    swapped = WEIGHT.copy()
    swapped[[3, 9]] = swapped[[9, 3]]
    negated = -WEIGHT
    others = [Net(graph(8, weight)) for weight in (changed, swapped, negated)]
    assert Net.shared_packed_bytes() - before == 4 * one
    x = RNG.standard_normal((1, 32, 8, 8), dtype=np.float32)
    for net, weight in zip([first, *others], [WEIGHT, changed, swapped, negated], strict=True):
        np.testing.assert_allclose(net.run([x])[0], graph(8, weight).reference([x])[0], rtol=1e-3, atol=1e-3)


def test_constants_are_read_where_they_are() -> None:
    """No step copies a constant blob, whatever layout its reader wants."""
    built = Graph()
    x = built.input("x", (1, 32, 6, 6))
    y = built.add("conv2d", [x], weights={"weight": WEIGHT}, padding=[1, 1, 1, 1])
    value = RNG.standard_normal((1, 64, 6, 6), dtype=np.float32)
    built.output(built.add("binary", [y, built.add("constant", [], weights={"value": value})], function="mul"))
    net = Net(built)
    steps = net.profile([np.ones((1, 32, 6, 6), np.float32)], 1)
    assert not [name for _, name, descriptor, _ in steps if "constant" in descriptor]
