"""Attention spelt out becomes one layer, whatever is scaled, masked and reshaped; and what is not attention stays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.graph.networks import Network

B, H, M, N, D, E = 2, 3, 5, 7, 4, 6


def operands(net: Network) -> tuple[int, int, int]:
    return net.input(B, H, M, D), net.input(B, H, N, D), net.input(B, H, N, E)


def turned(net: Network, blob: int) -> int:
    rank = len(net.graph.shape(blob))
    return net.add("transpose", blob, perm=[*range(rank - 2), rank - 1, rank - 2])


def context(net: Network, scores: int, v: int, **softmax: Any) -> int:
    weights = net.add("softmax", scores, axis=len(net.graph.shape(scores)) - 1, **softmax)
    return net.add("matmul", weights, v)


def attention_of(layers: list[dict[str, Any]]) -> dict[str, Any]:
    (found,) = [layer for layer in layers if layer["type"] == "attention"]
    assert not {"softmax", "matmul", "binary"} & {layer["type"] for layer in layers}
    return found


@pytest.mark.parametrize("scaled", ["scores", "divided", "query", "key", "both", "not"])
def test_scales(scaled: str) -> None:
    net = Network()
    q, k, v = operands(net)
    if scaled in ("query", "both"):
        q = net.binary("mul", q, 0.5)
    k = turned(net, k)
    if scaled in ("key", "both"):
        k = net.binary("mul", k, 0.5)
    scores = net.add("matmul", q, k)
    if scaled == "scores":
        scores = net.binary("mul", scores, 0.5)
    if scaled == "divided":
        scores = net.binary("div", scores, 2.0)
    layers = net.optimized(context(net, scores, v))
    wanted = {"both": 0.25, "not": 1.0}.get(scaled, 0.5)
    assert attention_of(layers)["attrs"]["scale"] == pytest.approx(wanted)


@pytest.mark.parametrize("shape", [(M, N), (1, 1, 1, N), (B, 1, M, N), (B, H, M, N)])
@pytest.mark.parametrize("constant", [False, True])
@pytest.mark.parametrize("first", [False, True])
def test_masks(shape: tuple[int, ...], constant: bool, first: bool) -> None:
    net = Network()
    q, k, v = operands(net)
    mask = net.constant(net.values(*shape)) if constant else net.input(*shape)
    scores = net.binary("mul", net.add("matmul", q, k, transpose_b=1), 0.5)
    masked = net.binary("add", mask, scores) if first else net.binary("add", scores, mask)
    attention_of(net.optimized(context(net, masked, v)))


def test_merged_heads() -> None:
    """As torch multiplies batches: heads and images along one axis, scores apart for the mask."""
    net = Network()
    q, k, v = operands(net)
    flat = [net.add("reshape", x, shape=[B * H, *net.graph.shape(x)[2:]]) for x in (q, turned(net, k), v)]
    scores = net.add("reshape", net.add("matmul", flat[0], flat[1]), shape=[B, H, M, N])
    masked = net.binary("add", scores, net.input(B, 1, 1, N))
    weights = net.add("reshape", net.add("softmax", masked, axis=3), shape=[B * H, M, N])
    made = net.add("reshape", net.add("matmul", weights, flat[2]), shape=[B, H, M, E])
    attention_of(net.optimized(made))


def test_rank_3() -> None:
    net = Network()
    q, k, v = net.input(H, M, D), net.input(H, N, D), net.input(H, N, E)
    attention_of(net.optimized(context(net, net.add("matmul", q, k, transpose_b=1), v)))


@pytest.mark.parametrize("safe", [0, 1])
def test_rows_that_see_nothing(safe: int) -> None:
    net = Network()
    q, k, v = operands(net)
    mask = np.zeros((M, N), np.float32)
    mask[2] = -np.inf
    scores = net.binary("add", net.add("matmul", q, k, transpose_b=1), net.constant(mask))
    net.graph.output(context(net, scores, v, safe=safe))
    with np.errstate(all="ignore"):
        (before,) = net.reference()
        net.graph.optimize()
        (after,) = net.reference()
    assert attention_of(net.graph.layers())["attrs"]["nan_if_empty"] == 1 - safe
    np.testing.assert_allclose(after, before)
    assert np.isnan(after[:, :, 2]).all() if not safe else (after[:, :, 2] == 0).all()


def test_heads_side_by_side() -> None:
    net = Network()
    q, k, v = operands(net)
    made = context(net, net.add("matmul", q, k, transpose_b=1), v)
    rows = net.add("reshape", net.add("transpose", made, perm=[0, 2, 1, 3]), shape=[B, M, H * E])
    layers = net.optimized(rows)
    assert attention_of(layers)["attrs"]["rows_first"] == 1
    assert "transpose" not in net.types()


def test_products_of_one_blob_are_joined() -> None:
    net = Network()
    x = net.input(B, M, 12)
    heads = []
    for bias in (True, False, True):
        made = net.add("reshape", net.linear(x, 12, bias=bias), shape=[B, M, H, 4])
        heads.append(net.add("transpose", made, perm=[0, 2, 1, 3]))
    layers = net.optimized(context(net, net.add("matmul", heads[0], heads[1], transpose_b=1), heads[2]))
    attention_of(layers)
    assert net.types().count("linear") == 1
    assert net.types().count("slice") == 3


@pytest.mark.parametrize("odd", ["read twice", "scores read", "axis", "log", "mask scaled", "shared keys"])
def test_others_stay(odd: str) -> None:
    net = Network()
    q, k, v = operands(net)
    if odd == "shared keys":
        k = net.input(B, 1, N, D)
    scores = net.add("matmul", q, k, transpose_b=1)
    outputs = [scores] if odd == "scores read" else []
    if odd == "mask scaled":
        scores = net.binary("mul", net.binary("add", scores, net.input(M, N)), 0.5)
    weights = net.add("softmax", scores, axis=2 if odd == "axis" else 3, log=int(odd == "log"))
    outputs += [weights] if odd == "read twice" else []
    net.optimized(net.add("matmul", weights, v), *outputs)
    assert "attention" not in net.types()
