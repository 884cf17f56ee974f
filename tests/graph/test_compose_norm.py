"""Normalisations that are spelt out in arithmetic become one layer, and near misses do not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.graph.networks import Array, Network

SHAPE = (2, 5, 12)
EPS = 0.125


def rows(*shape: int) -> tuple[Network, int]:
    net = Network()
    return net, net.act(net.input(*(shape or SHAPE)), "tanh")


def mean(net: Network, x: int, axes: int = 1) -> int:
    rank = len(net.graph.shape(x))
    return net.add("reduce", x, function="mean", axes=list(range(rank - axes, rank)), keepdim=1)


def alone(net: Network, function: str, x: int) -> int:
    return net.add("binary", x, function=function)


SQUARES: dict[str, Callable[[Network, int], int]] = {
    "product": lambda net, x: net.binary("mul", x, x),
    "power": lambda net, x: net.binary("pow", x, 2.0),
}


NORMALISED: dict[str, Callable[[Network, int, int], int]] = {
    "rsqrt": lambda net, x, v: net.binary("mul", x, alone(net, "rsqrt", v)),
    "rsqrt on the left": lambda net, x, v: net.binary("mul", alone(net, "rsqrt", v), x),
    "quotient": lambda net, x, v: net.binary("div", x, alone(net, "sqrt", v)),
    "power of the quotient": lambda net, x, v: net.binary("div", x, net.binary("pow", v, 0.5)),
    "power": lambda net, x, v: net.binary("mul", x, net.binary("pow", v, -0.5)),
    "reciprocal": lambda net, x, v: net.binary("mul", net.binary("div", alone(net, "sqrt", v), 1.0, reversed=1), x),
}


def spelt(net: Network, x: int, squares: str = "product", root: str = "rsqrt", axes: int = 1, eps: float = EPS) -> int:
    variance = mean(net, SQUARES[squares](net, x), axes)
    return NORMALISED[root](net, x, net.binary("add", variance, eps))


def centred(net: Network, x: int, axes: int = 1) -> int:
    return net.binary("sub", x, mean(net, x, axes))


def only_norm(net: Network, *outputs: int) -> dict[str, Any]:
    layers = net.optimized(*outputs)
    (found,) = [layer for layer in layers if layer["type"] in ("rms_norm", "layer_norm")]
    assert net.types() == ["activation", found["type"]]
    return found


@pytest.mark.parametrize("root", NORMALISED)
@pytest.mark.parametrize("squares", SQUARES)
@pytest.mark.parametrize("with_mean", [False, True])
def test_spelt_out(squares: str, root: str, with_mean: bool) -> None:
    net, x = rows()
    norm = only_norm(net, spelt(net, centred(net, x) if with_mean else x, squares, root))
    assert norm["type"] == ("layer_norm" if with_mean else "rms_norm")
    assert norm["attrs"] == {"axes": 1, "eps": EPS}


@pytest.mark.parametrize("with_mean", [False, True])
@pytest.mark.parametrize("axes", [1, 2])
def test_weight_and_bias(axes: int, with_mean: bool) -> None:
    net, x = rows()
    y = spelt(net, centred(net, x, axes) if with_mean else x, axes=axes)
    y = net.binary("mul", y, net.values(*SHAPE[-axes:]), reversed=1)
    if with_mean:
        y = net.binary("add", y, net.values(*SHAPE[-axes:]))
    norm = only_norm(net, y)
    assert norm["attrs"]["axes"] == axes
    assert set(norm["weights"]) == ({"weight", "bias"} if with_mean else {"weight"})


@pytest.mark.parametrize(("shape", "found"), [((12,), True), ((1, 5, 12), True), (SHAPE, False)])
def test_over_all_axes(shape: tuple[int, ...], found: bool) -> None:
    """Routines have no statistics over several images."""
    net, x = rows(*shape)
    net.optimized(spelt(net, x, axes=len(shape)))
    assert ("rms_norm" in net.types()) == found


@pytest.mark.parametrize("shape", [(5, 12), (1, 5, 12), (12,), (5, 1), (1,), (), None])
def test_parameters_that_are_broadcast(shape: tuple[int, ...] | None) -> None:
    net, x = rows()
    y = spelt(net, centred(net, x, 2), axes=2)
    for function, number in (("mul", 0.5), ("add", 0.25)):
        y = net.binary(function, y, number if shape is None else net.values(*shape))
    assert set(only_norm(net, y)["weights"]) == {"weight", "bias"}


def weight_on_the_source(net: Network, x: int, weight: Array) -> int:
    variance = net.binary("add", mean(net, net.binary("mul", x, x)), EPS)
    return net.binary("div", net.binary("mul", x, weight), alone(net, "sqrt", variance))


def weight_on_the_root(net: Network, x: int, weight: Array) -> int:
    variance = net.binary("add", mean(net, net.binary("mul", x, x)), EPS)
    return net.binary("mul", x, net.binary("mul", alone(net, "rsqrt", variance), weight))


@pytest.mark.parametrize("make", [weight_on_the_source, weight_on_the_root])
@pytest.mark.parametrize("with_mean", [False, True])
def test_weight_in_other_places(make: Callable[[Network, int, Array], int], with_mean: bool) -> None:
    net, x = rows()
    norm = only_norm(net, make(net, centred(net, x) if with_mean else x, net.values(SHAPE[-1])))
    assert (norm["type"], set(norm["weights"])) == ("layer_norm" if with_mean else "rms_norm", {"weight"})


@pytest.mark.parametrize("make", [weight_on_the_source, weight_on_the_root])
def test_factors_of_rows(make: Callable[[Network, int, Array], int]) -> None:
    net, x = rows()
    net.optimized(make(net, x, net.values(5, 1)))
    left = ["binary"] if make is weight_on_the_source else ["binary"] * 5 + ["reduce"]
    assert sorted(net.types()) == sorted(["activation", *left, *["rms_norm"] * (make is weight_on_the_source)])


def test_one_plus_weight() -> None:
    net, x = rows()
    weight = net.binary("add", net.constant(net.values(SHAPE[-1])), 1.0)
    assert set(only_norm(net, net.binary("mul", spelt(net, x), weight))["weights"]) == {"weight"}


def test_weight_into_a_norm_that_has_none() -> None:
    net, x = rows()
    y = net.add("layer_norm", x, axes=1, eps=EPS)
    y = net.binary("add", net.binary("mul", y, net.values(SHAPE[-1])), net.values(SHAPE[-1]))
    assert set(only_norm(net, y)["weights"]) == {"weight", "bias"}


def test_a_difference_that_is_computed_twice() -> None:
    for again in (lambda net, x, m: net.binary("sub", x, m), lambda net, x, _: centred(net, x)):
        net, x = rows()
        average = mean(net, x)
        variance = mean(net, net.binary("pow", net.binary("sub", x, average), 2.0))
        y = net.binary("div", again(net, x, average), alone(net, "sqrt", net.binary("add", variance, EPS)))
        assert only_norm(net, y)["type"] == "layer_norm"


def shifted(net: Network, x: int, weighted: bool = True, another: bool = False, wanted: bool = False) -> list[int]:
    average = mean(net, x)
    difference = net.binary("sub", x, average)
    variance = net.binary("add", mean(net, net.binary("mul", difference, difference)), EPS)
    g = net.binary("div", alone(net, "sqrt", variance), 1.0, reversed=1)
    if weighted:
        g = net.binary("mul", g, net.values(SHAPE[-1]))
    moved = net.binary("mul", mean(net, net.act(x, "exp")) if another else average, g)
    shift = net.binary("sub", moved, net.values(SHAPE[-1]), reversed=1)
    return [net.binary("add", net.binary("mul", x, g), shift), *([g] if wanted else [])]


@pytest.mark.parametrize("weighted", [False, True])
def test_a_mean_that_is_subtracted_behind(weighted: bool) -> None:
    """TensorFlow normalises so."""
    net, x = rows()
    norm = only_norm(net, *shifted(net, x, weighted))
    assert norm["type"] == "layer_norm"
    assert set(norm["weights"]) == ({"weight", "bias"} if weighted else {"bias"})


@pytest.mark.parametrize("changed", ["another", "wanted"])
def test_almost_subtracted_behind(changed: str) -> None:
    net, x = rows()
    net.optimized(*shifted(net, x, **{changed: True}))
    assert "layer_norm" not in net.types()


def test_over_a_plane() -> None:
    """A front door makes a pooling of a mean over an image's axes."""
    net, x = rows(2, 3, 4, 5)
    average = net.add("adaptive_pool2d", x, function="avg", output_size=[1, 1])
    difference = net.binary("sub", x, average)
    variance = net.add("adaptive_pool2d", net.binary("mul", difference, difference), function="avg", output_size=[1, 1])
    norm = only_norm(net, NORMALISED["rsqrt"](net, difference, net.binary("add", variance, EPS)))
    assert (norm["type"], norm["attrs"]["axes"]) == ("layer_norm", 2)


def test_a_difference_that_is_wanted() -> None:
    net, x = rows()
    difference = centred(net, x)
    net.optimized(spelt(net, difference), difference)
    assert sorted(net.types()) == ["activation", "binary", "reduce", "rms_norm"]


def test_a_mean_that_is_wanted() -> None:
    net, x = rows()
    average = mean(net, x)
    net.optimized(spelt(net, net.binary("sub", x, average)), average)
    assert sorted(net.types()) == ["activation", "binary", "reduce", "rms_norm"]


def test_other_readers_of_the_source() -> None:
    net, x = rows()
    net.optimized(net.binary("add", x, spelt(net, centred(net, x))))
    assert sorted(net.types()) == ["activation", "binary", "layer_norm"]


def with_output(part: str) -> Callable[[Network, int], list[int]]:
    def make(net: Network, x: int) -> list[int]:
        squares = net.binary("mul", x, x)
        parts = {"squares": squares, "mean": mean(net, squares)}
        parts["sum"] = net.binary("add", parts["mean"], EPS)
        parts["root"] = alone(net, "rsqrt", parts["sum"])
        return [net.binary("mul", x, parts["root"]), parts[part]]

    return make


def ordinary(make: Callable[[Network, int], int]) -> Callable[[Network, int], list[int]]:
    return lambda net, x: [make(net, x)]


def over_axis(net: Network, x: int, keepdim: int = 1) -> int:
    variance = net.add("reduce", net.binary("mul", x, x), function="mean", axes=[1], keepdim=keepdim)
    return net.binary("mul", x, alone(net, "rsqrt", net.binary("add", variance, EPS)))


def sum_of_squares(net: Network, x: int) -> int:
    total = net.add("reduce", net.binary("mul", x, x), function="sum", axes=[2], keepdim=1)
    return net.binary("mul", x, alone(net, "rsqrt", net.binary("add", total, EPS)))


def of_another(net: Network, x: int) -> int:
    variance = mean(net, net.binary("mul", x, net.act(x, "sigmoid")))
    return net.binary("mul", x, alone(net, "rsqrt", net.binary("add", variance, EPS)))


def times_another(net: Network, x: int) -> int:
    root = alone(net, "rsqrt", net.binary("add", mean(net, net.binary("mul", x, x)), EPS))
    return net.binary("mul", net.act(x, "sigmoid"), root)


def eps_by_row(net: Network, x: int) -> int:
    variance = net.binary("add", mean(net, net.binary("mul", x, x)), np.abs(net.values(5, 1)))
    return net.binary("mul", x, alone(net, "rsqrt", variance))


def upside_down(net: Network, x: int) -> int:
    return net.binary("div", alone(net, "sqrt", net.binary("add", mean(net, net.binary("mul", x, x)), EPS)), x)


NEAR = {
    **{f"the {part} is wanted": with_output(part) for part in ("squares", "mean", "sum", "root")},
    "another axis": ordinary(over_axis),
    "a sum": ordinary(sum_of_squares),
    "another's square": ordinary(of_another),
    "another is normalised": ordinary(times_another),
    "no eps": ordinary(lambda net, x: spelt(net, x, eps=0.0)),
    "an eps for each row": ordinary(eps_by_row),
    "a cube": ordinary(
        lambda net, x: NORMALISED["rsqrt"](net, x, net.binary("add", mean(net, net.binary("pow", x, 3.0)), 2.0))
    ),
    "the wrong way round": ordinary(upside_down),
}


@pytest.mark.parametrize("name", NEAR)
def test_near_misses(name: str) -> None:
    net, x = rows()
    net.optimized(*NEAR[name](net, net.binary("add", net.act(x, "sigmoid"), 0.5)))
    assert not {"rms_norm", "layer_norm"} & set(net.types())


@pytest.mark.parametrize("shape", [(2, 1, 1), (5, 1), (1, 5, 12)])
def test_what_is_no_parameter(shape: tuple[int, ...]) -> None:
    net, x = rows()
    net.optimized(net.binary("mul", spelt(net, x), net.values(*shape)))
    assert net.types() == ["activation", "rms_norm", "binary"]


def test_sums_stay_behind_rms_norm_and_second_factors_too() -> None:
    net, x = rows()
    factors: list[Array] = [net.values(SHAPE[-1]) for _ in range(3)]
    y = net.binary("mul", net.binary("mul", spelt(net, x), factors[0]), factors[1])
    net.optimized(y, net.binary("add", spelt(net, x), factors[2]))
    assert sorted(net.types()) == ["activation", "binary", "binary", "rms_norm", "rms_norm"]
