"""Passes over what only moves data, transposes and concatenations: as in test_passes.py."""

from __future__ import annotations

from tests.graph.networks import assert_close, dense_block, image


def test_transposes_cancel() -> None:
    net, x = image()
    y = net.act(net.add("transpose", x, perm=[0, 2, 3, 1]), "gelu")
    net.optimized(net.add("transpose", net.binary("add", y, 2.0), perm=[0, 3, 1, 2]))
    assert net.types() == ["activation", "binary"]


def test_transposes_compose() -> None:
    net, x = image()
    y = net.add("transpose", net.add("transpose", x, perm=[0, 2, 3, 1]), perm=[1, 0, 3, 2])
    layers = net.optimized(y)
    assert [layer["attrs"]["perm"] for layer in layers] == [[2, 0, 1, 3]]


def test_two_transposed_operands_become_one() -> None:
    net, x = image()
    y = net.input(1, 8, 6, 6)
    turn = {"perm": [0, 2, 3, 1]}
    net.optimized(net.binary("mul", net.add("transpose", x, **turn), net.add("transpose", y, **turn)))
    assert net.types() == ["binary", "transpose"]


def test_a_transpose_does_not_pass_what_knows_its_axes() -> None:
    net, x = image()
    y = net.add("softmax", net.add("transpose", x, perm=[0, 2, 3, 1]), axis=3)
    net.optimized(net.add("transpose", y, perm=[0, 3, 1, 2]))
    assert net.types() == ["transpose", "softmax", "transpose"]


def test_concats_become_flat() -> None:
    net, x = image()
    y = net.act(x)
    inner = net.add("concat", x, y, axis=1)
    net.optimized(net.add("concat", net.act(y, "tanh"), inner, axis=1), net.add("concat", y, axis=2))
    assert [len(layer["inputs"]) for layer in net.graph.layers() if layer["type"] == "concat"] == [3]


def test_concats_along_other_axes_stay() -> None:
    net, x = image()
    inner = net.add("concat", x, x, axis=1)
    net.optimized(net.add("concat", inner, inner, axis=2))
    assert net.types() == ["concat", "concat"]


def test_a_dense_block_grows_one_buffer() -> None:
    net = dense_block(4)
    before = net.reference()
    net.graph.optimize()
    assert_close(net.reference()[0], before[0], 2e-6)
    assert [len(layer["inputs"]) for layer in net.graph.layers() if layer["type"] == "concat"] == [2] * 4
