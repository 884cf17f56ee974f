"""Each pass on a graph that it rewrites and on one that it must leave alone; results stay what they were."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, note, settings

from tests.graph.networks import Network, assert_close, dense_block, image, networks, resnet_like


def test_remove_identity() -> None:
    net, x = image()
    y = net.add("identity", x)
    y = net.add("reshape", y, shape=[1, 8, 6, 6])
    y = net.add("slice", y, axis=1, start=0, end=8)
    y = net.add("pad", y, mode="constant", pads=[0] * 8)
    y = net.add("transpose", y, perm=[0, 1, 2, 3])
    y = net.add("adaptive_pool2d", y, function="avg", output_size=[6, 6])
    y = net.add("upsample", y, mode="nearest", output_size=[6, 6])
    net.optimized(net.act(y))
    assert net.types() == ["activation"]


def test_an_input_may_become_an_output() -> None:
    net, x = image()
    assert net.optimized(net.add("identity", x)) == []


@pytest.mark.parametrize(
    ("type_", "attrs"),
    [
        ("slice", {"axis": 1, "start": 0, "end": 7}),
        ("slice", {"axis": 1, "start": 0, "end": 8, "step": 2}),
        ("pad", {"mode": "constant", "pads": [0, 0, 0, 1, 0, 0, 0, 0]}),
        ("transpose", {"perm": [0, 1, 3, 2]}),
        ("upsample", {"mode": "bilinear", "output_size": [6, 6]}),
    ],
)
def test_remove_identity_leaves_what_does_something(type_: str, attrs: dict[str, object]) -> None:
    net, x = image()
    net.optimized(net.add(type_, x, **attrs))
    assert net.types() == [type_]


def test_axes_of_size_one_move_by_reshape() -> None:
    net, x = image(h=1, w=1)
    y = net.add("transpose", x, perm=[0, 2, 3, 1])
    net.optimized(net.act(net.add("reshape", y, shape=[1, 8])))
    assert net.types() == ["reshape", "activation"]


def test_constants_fold() -> None:
    net, x = image()
    a = net.constant(net.values(8, 1, 1))
    b = net.act(net.binary("mul", a, a), "tanh")
    net.optimized(net.binary("sub", b, net.act(x)))
    layer = net.graph.layers()[-1]
    assert net.types() == ["activation", "binary"]
    assert layer["weights"] == {"other": (8, 1, 1)}
    assert layer["attrs"]["reversed"] == 1


def test_a_constant_output_stays() -> None:
    net, x = image()
    net.optimized(net.binary("add", net.constant(net.values(3)), 1.0), net.act(x))
    assert sorted(net.types()) == ["activation", "constant"]


@pytest.mark.parametrize("transpose_b", [0, 1])
def test_matmul_with_constant_is_linear(transpose_b: int) -> None:
    net = Network()
    x = net.input(4, 8)
    b = net.constant(net.values(*((5, 8) if transpose_b else (8, 5))))
    y = net.add("matmul", x, b, transpose_b=transpose_b)
    layers = net.optimized(net.binary("add", y, net.values(5)))
    assert net.types() == ["linear"]
    assert layers[0]["weights"] == {"weight": (5, 8), "bias": (5,)}


def test_matmul_of_batched_constants_stays() -> None:
    net = Network()
    x = net.input(2, 4, 8)
    net.optimized(net.add("matmul", x, net.constant(net.values(2, 8, 5))))
    assert "matmul" in net.types()


@pytest.mark.parametrize("bias", [True, False])
def test_fold_batch_norm(bias: bool) -> None:
    net, x = image()
    y = net.batch_norm(net.conv(x, 16, groups=4, bias=bias))
    layers = net.optimized(net.binary("mul", y, 0.5))
    assert net.types() == ["conv2d"]
    assert set(layers[0]["weights"]) == {"weight", "bias"}


def test_fold_batch_norm_into_the_others() -> None:
    net = Network()
    x = net.input(2, 8, 5)
    flat = net.add("conv1d", x, weights={"weight": net.values(6, 4, 3)}, groups=2)
    image_ = net.input(1, 4, 3, 3)
    up = net.add("conv_transpose2d", image_, weights={"weight": net.values(4, 3, 2, 2)}, groups=2, stride=[2, 2])
    net.optimized(net.batch_norm(flat), net.batch_norm(up), net.batch_norm(net.linear(net.input(3, 8), 5)))
    assert sorted(net.types()) == ["conv1d", "conv_transpose2d", "linear"]


def test_batch_norm_is_not_folded_where_the_convolution_is_read_elsewhere() -> None:
    net, x = image()
    y = net.conv(x, 16)
    net.optimized(net.batch_norm(y), y)
    assert net.types() == ["conv2d", "scale_shift"]


def test_batch_norm_on_another_axis_than_the_weights() -> None:
    net = Network()
    y = net.linear(net.input(2, 5, 8), 5)
    net.optimized(net.batch_norm(y))
    assert net.types() == ["linear", "scale_shift"]


def test_structure_does_not_depend_on_weights() -> None:
    hashes = set()
    for value in (0.0, 1.0, np.nan):
        net, x = image()
        weights = {"scale": np.full(8, value, np.float32), "shift": np.zeros(8, np.float32)}
        y = net.add("scale_shift", net.act(x), weights=weights)
        net.graph.output(net.binary("mul", y, np.full((8, 1, 1), value, np.float32)))
        net.graph.optimize()
        hashes.add(net.graph.structural_hash())
    assert len(hashes) == 1


def test_pad_into_conv() -> None:
    net, x = image()
    y = net.add("pad", x, mode="constant", pads=[0, 0, 1, 2, 0, 0, 3, 0])
    layers = net.optimized(net.conv(y, 4, padding=[1, 0, 0, 1]))
    assert net.types() == ["conv2d"]
    assert layers[0]["attrs"]["padding"] == [2, 2, 3, 1]


@pytest.mark.parametrize("attrs", [{"value": 1.0}, {"mode": "reflect"}, {"pads": [0, 1, 0, 0, 0, 0, 0, 0]}])
def test_other_pads_stay(attrs: dict[str, object]) -> None:
    net, x = image()
    y = net.add("pad", x, **{"mode": "constant", "pads": [0, 0, 1, 1, 0, 0, 1, 1], **attrs})
    net.optimized(net.conv(y, 4))
    assert net.types() == ["pad", "conv2d"]


@pytest.mark.parametrize(
    ("attrs", "folds"),
    [
        ({"padding": [0, 0, 0, 0], "count_include_pad": 0}, True),
        ({"padding": [0, 1, 0, 1], "count_include_pad": 1}, False),  # together more than half the kernel
        ({"padding": [0, 1, 0, 1], "count_include_pad": 0}, False),
        ({"padding": [0, 0, 0, 0], "ceil_mode": 1}, False),
    ],
)
def test_pad_into_average_pooling(attrs: dict[str, object], folds: bool) -> None:
    net, x = image()
    y = net.add("pad", x, mode="constant", pads=[0, 0, 1, 1, 0, 0, 1, 1])
    net.optimized(net.add("pool2d", y, function="avg", kernel=[3, 3], stride=[2, 2], **attrs))
    assert net.types() == (["pool2d"] if folds else ["pad", "pool2d"])


def test_absorb_activation() -> None:
    net, x = image()
    layers = net.optimized(net.act(net.conv(x, 4), "clamp", a=0.0, b=6.0))
    assert net.types() == ["conv2d"]
    assert layers[0]["activation"] == "clamp"


def test_an_activation_is_not_absorbed_where_its_input_is_wanted() -> None:
    net, x = image()
    y = net.conv(x, 4)
    net.optimized(net.act(y), net.add("reshape", y, shape=[1, 64]))
    assert sorted(net.types()) == ["activation", "conv2d", "reshape"]


def test_only_one_activation_is_absorbed() -> None:
    net, x = image()
    net.optimized(net.act(net.act(net.conv(x, 4)), "tanh"))
    assert net.types() == ["conv2d", "activation"]


def test_compose_activation() -> None:
    net, x = image()

    def gate(x: int) -> int:
        return net.act(net.binary("add", x, 3.0), "clamp", a=0.0, b=6.0)

    blobs = [net.act(x, "tanh") for _ in range(5)]
    outputs = [
        net.binary("mul", blobs[0], net.act(blobs[0], "sigmoid")),
        net.binary("div", gate(blobs[1]), 6.0),
        net.binary("mul", gate(blobs[2]), 1 / 6),
        net.binary("div", net.binary("mul", blobs[3], gate(blobs[3])), 6.0),
        net.binary("mul", net.binary("div", gate(blobs[4]), 6.0), blobs[4]),
    ]
    layers = net.optimized(*outputs)
    assert net.types() == ["activation"] * 10
    functions = [layer["attrs"]["function"] for layer in layers]
    assert sorted(f for f in functions if f != "tanh") == ["hardsigmoid"] * 2 + ["hardswish"] * 2 + ["silu"]


def test_compose_gelu() -> None:
    net, x = image()
    blobs = [net.act(x, "tanh") for _ in range(5)]

    def gate(x: int, root: float = 2**0.5) -> int:
        return net.binary("add", net.act(net.binary("div", x, root), "erf"), 1.0)

    outputs = [
        net.binary("mul", net.binary("mul", blobs[0], gate(blobs[0])), 0.5),
        net.binary("div", net.binary("mul", gate(blobs[1]), blobs[1]), 2.0),
        net.binary("mul", net.binary("mul", blobs[2], 0.5), gate(blobs[2])),
        net.binary("mul", blobs[3], net.binary("mul", gate(blobs[3]), 0.5)),
        net.binary("mul", net.binary("mul", gate(blobs[4], 1.5), blobs[4]), 0.5),
    ]
    layers = net.optimized(*outputs)
    functions = [layer["attrs"]["function"] for layer in layers]
    assert functions.count("gelu") == 4


def test_compose_activation_needs_the_same_source_and_numbers() -> None:
    net, x = image()
    y = net.input(1, 8, 6, 6)
    almost = net.act(net.binary("add", x, 2.0), "clamp", a=0.0, b=6.0)
    net.optimized(net.binary("mul", x, net.act(y, "sigmoid")), net.binary("div", almost, 6.0))
    assert sorted(net.types()) == ["activation", "binary", "binary", "binary"]


def test_absorb_residual_and_activation() -> None:
    net, x = image()
    y = net.batch_norm(net.conv(x, 8, padding=[1] * 4))
    layers = net.optimized(net.act(net.binary("add", x, y)))
    assert net.types() == ["conv2d"]
    assert layers[0]["residual"]
    assert layers[0]["activation"] == "relu"


def test_the_later_of_two_convolutions_adds() -> None:
    net, x = image()
    a = net.conv(x, 8, 1)
    b = net.conv(net.act(net.conv(x, 8, padding=[1] * 4)), 8, padding=[1] * 4)
    layers = net.optimized(net.binary("add", a, b))
    assert [layer["residual"] for layer in layers] == [False, False, True]


def test_a_residual_is_not_absorbed_behind_an_activation_or_a_broadcast() -> None:
    net, x = image()
    a = net.act(net.conv(x, 8, padding=[1] * 4))
    b = net.conv(net.input(1, 8, 1, 1), 8, 1)
    net.optimized(net.binary("add", x, a), net.binary("add", x, b))
    assert sorted(net.types()) == ["binary", "binary", "conv2d", "conv2d"]


@pytest.mark.parametrize(("keepdim", "types"), [(1, ["adaptive_pool2d"]), (0, ["adaptive_pool2d", "reshape"])])
def test_means_over_images_are_global_pooling(keepdim: int, types: list[str]) -> None:
    net, x = image()
    net.optimized(net.add("reduce", x, function="mean", axes=[2, 3], keepdim=keepdim))
    assert net.types() == types


def test_other_means_stay() -> None:
    net, x = image()
    net.optimized(net.add("reduce", x, function="mean", axes=[1, 2]), net.add("reduce", x, function="sum", axes=[2, 3]))
    assert net.types() == ["reduce", "reduce"]


@pytest.mark.parametrize(
    ("size", "type_"), [([3, 2], "pool2d"), ([4, 3], "adaptive_pool2d"), ([1, 1], "adaptive_pool2d")]
)
def test_adaptive_pooling_with_equal_windows(size: list[int], type_: str) -> None:
    net, x = image()
    net.optimized(net.add("adaptive_pool2d", x, function="max", output_size=size))
    assert net.types() == [type_]


def test_resnet_is_convolutions_only() -> None:
    net = resnet_like()
    before = net.reference()
    net.graph.optimize()
    assert_close(net.reference()[0], before[0], 2e-6)
    types = net.types()
    assert types.count("conv2d") == 12
    assert set(types) == {"conv2d", "pool2d", "adaptive_pool2d", "reshape", "linear"}
    assert sum(layer["residual"] for layer in net.graph.layers()) == 5


def test_what_reaches_no_output_goes() -> None:
    net, x = image()
    net.add("transpose", net.act(x), perm=[0, 2, 3, 1])
    net.optimized(net.add("transpose", x, perm=[0, 3, 2, 1]))
    assert net.types() == ["transpose"]


def test_optimizing_twice_changes_nothing() -> None:
    net = dense_block()
    net.graph.optimize()
    once = net.graph.canonical()
    net.graph.optimize()
    assert net.graph.canonical() == once


@settings(max_examples=150, deadline=None, database=None, suppress_health_check=list(HealthCheck))
@given(networks())
def test_random_graphs_keep_their_results(net: Network) -> None:
    note(net.graph.canonical())
    before = net.reference()
    net.graph.optimize()
    for expected, got in zip(before, net.reference(), strict=True):
        assert_close(got, expected, 3e-6)
    once = net.graph.canonical()
    net.graph.optimize()
    assert net.graph.canonical() == once
