"""Weights of few bits with real activations: every integer counts, wherever it lies, and no copy in floats is kept."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import softneuro
from softneuro import _C
from tests.tune.records import records

Array = np.ndarray[Any, Any]
RNG = np.random.default_rng(0)


def available(layer: str, algorithm: str) -> list[str]:
    return [
        e["descriptor"]
        for e in softneuro.registry()
        if e["layer"] == layer and e["available"] and e["descriptor"].split("/")[-1].startswith(algorithm + "_")
    ]


def integers(*shape: int) -> Array:
    """Products of which with bytes are exact sums in float32."""
    return RNG.integers(-9, 10, shape).astype(np.float32)


def byte_weights(n: int, k: int, **more: Any) -> dict[str, Any]:
    return {"weight": (RNG.integers(-128, 128, (n, k), np.int8), {"scale": 0.5, "least": -128, "most": 127, **more})}


def blocks(n: int, k: int, bits: int, block: int, *, zeros: bool) -> tuple[dict[str, Any], Array]:
    """A layer's weights, and the same as reals."""
    count = -(-k // block)
    values = RNG.integers(0, 1 << bits, (n, count * block))
    zero = RNG.integers(0, 1 << bits, (n, count)) if zeros else np.full((n, count), 1 << (bits - 1))
    scales = np.exp2(RNG.integers(-3, 1, (n, count))).astype(np.float32)

    def packed(numbers: Array) -> Array:
        if bits == 8:
            return numbers.astype(np.uint8)
        numbers = np.pad(numbers, ((0, 0), (0, numbers.shape[1] % 2)))
        return (numbers[:, ::2] | numbers[:, 1::2] << 4).astype(np.uint8)

    weights = {"weight": (packed(values).reshape(n, count, -1), "uint8"), "scales": scales}
    if zeros:
        weights["zero_points"] = (packed(zero), "uint8")
    reals = (values - zero.repeat(block, 1)) * scales.repeat(block, 1)
    return weights, reals[:, :k].astype(np.float32)


@pytest.mark.parametrize("descriptor", available("linear", "dot_int8"))
@pytest.mark.parametrize("k", [1, 15, 63, 64, 65, 130, 1001])
def test_bytes_are_exact(descriptor: str, k: int) -> None:
    for rows in (1, 4, 5, 7, 11, 16):
        for n in (1, 9, 37):
            weights, x = byte_weights(n, k), integers(rows, k)
            for params in ("{streams=4,fetch=0}", "{streams=4,fetch=1}", "{streams=8,fetch=1}")[
                : 3 if rows == 1 else 2
            ]:
                result = _C.testing.run_routine("linear", {}, weights, [x], descriptor + params, {}, 2)
                np.testing.assert_array_equal(result, x @ weights["weight"][0].T.astype(np.float32) * 0.5)


@pytest.mark.parametrize("descriptor", available("linear", "decoded_int8"))
def test_decoded_bytes_are_exact(descriptor: str) -> None:
    for k in (1, 15, 64, 131, 2100):
        for rows, n in ((1, 5), (5, 33), (19, 300)):
            weights, x = byte_weights(n, k), integers(rows, k)
            result = _C.testing.run_routine("linear", {}, weights, [x], descriptor + "{panel=1}", {}, 2)
            np.testing.assert_array_equal(result, x @ weights["weight"][0].T.astype(np.float32) * 0.5)


@pytest.mark.parametrize("descriptor", available("linear_blocks", "dot") + available("linear_blocks", "gemm"))
@pytest.mark.parametrize("zeros", [False, True], ids=["middle", "zeros"])
@pytest.mark.parametrize(("bits", "block"), [(4, 16), (4, 32), (8, 16), (8, 128)])
def test_blocks_are_exact(descriptor: str, bits: int, block: int, zeros: bool) -> None:
    params = f"{{bits={bits},panel=1}}" if "gemm" in descriptor else f"{{bits={bits},fetch=1}}"
    for k in (1, 7, 16, 41, 96, 333, 1100):
        for rows, n in ((1, 5), (2, 40), (5, 33), (16, 70)):
            weights, reals = blocks(n, k, bits, block, zeros=zeros)
            x = integers(rows, k)
            attrs = {"bits": bits, "block": block}
            result = _C.testing.run_routine("linear_blocks", attrs, weights, [x], descriptor + params, {}, 2)
            np.testing.assert_array_equal(result, x @ reals.T)


@pytest.mark.parametrize(
    ("weights", "rows", "reason"),
    [
        (byte_weights(8, 8, zero_point=3), 1, "the weights have a zero point"),
        (byte_weights(8, 8, scale=[0.5] * 8, axis=1), 1, "the weights have a scale for each of their inputs"),
        (byte_weights(8, 8), 17, "more than 16 rows"),
        ({"weight": np.ones((8, 8), np.float32)}, 1, "the weights are not quantized"),
    ],
)
def test_other_bytes_are_declined(weights: dict[str, Any], rows: int, reason: str) -> None:
    refusals = _C.testing.refusals("linear", {}, weights, [(rows, 8)])
    assert {refusals[descriptor] for descriptor in available("linear", "dot_int8")} == {reason}


@pytest.mark.parametrize("bits", [4, 8])
def test_no_floats_are_kept(bits: int) -> None:
    """Bytes are read where the model has them; blocks are packed in what they take."""
    n, k = 64, 1024
    descriptor = available("linear", "dot_int8")[0] + "{streams=4,fetch=0}"
    assert _C.testing.packed_bytes("linear", {}, byte_weights(n, k), [(1, k)], descriptor) == (0, 0)
    descriptor = available("linear", "decoded_int8")[0] + "{panel=2}"
    assert _C.testing.packed_bytes("linear", {}, byte_weights(n, k), [(1, k)], descriptor) == (0, 0)
    weights, _ = blocks(n, k, bits, 32, zeros=False)
    own = weights["weight"][0].nbytes + weights["scales"].nbytes
    for name, params in (("dot", f"{{bits={bits},fetch=0}}"), ("gemm", f"{{bits={bits},panel=2}}")):
        arguments = ("linear_blocks", {"bits": bits, "block": 32}, weights, [(1, k)])
        foretold, actual = _C.testing.packed_bytes(*arguments, available("linear_blocks", name)[0] + params)
        assert foretold == actual == own


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"bits": 2}, "bits is 2, not 4 or 8"),
        ({"block": 24}, "block is 24, not a power of two"),
        ({"block": 8192}, "block is 8192, not a power of two from 16 to 4096"),
        ({"weight": np.zeros((8, 2, 16), np.float32)}, "weight must be uint8"),
        ({"weight": (np.zeros((8, 3, 16), np.uint8), "uint8")}, "weight has shape"),
        ({"scales": np.ones((8, 3), np.float32)}, "scales has shape"),
        ({"zero_points": (np.zeros((8, 2), np.uint8), "uint8")}, "zero_points has shape"),
    ],
)
def test_wrong_blocks_are_refused(change: dict[str, Any], message: str) -> None:
    graph = softneuro.Graph()
    weights: dict[str, Any] = blocks(8, 64, 4, 32, zeros=False)[0]
    given = {"bits": 4, "block": 32, **weights, **change}
    attrs = {key: given.pop(key) for key in ("bits", "block")}
    with pytest.raises(softneuro.Error, match=message):
        graph.add("linear_blocks", [graph.input("x", (1, 64))], weights=given, **attrs)


def linear(rows: int, size: int) -> softneuro.Graph:
    graph = softneuro.Graph()
    graph.output(graph.add("linear", [graph.input("x", (rows, size))], weights=byte_weights(size, size)))
    return graph


@pytest.mark.parametrize(("rows", "best"), [(1, "dot_int8"), (16, "dot_int8"), (17, "decoded_int8")])
def test_bytes_are_the_choice_where_nothing_is_measured(rows: int, best: str) -> None:
    (layer,) = _C.tune(linear(rows, 64), _C.parse_options({"tune": "off"}), 1).layers
    assert f"/{best}_" in layer.descriptor


def test_tuning_tries_bytes_and_keeps_no_floats(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A limit of memory leaves nothing but bytes."""
    monkeypatch.setenv("SOFTNEURO_CACHE_DIR", str(tmp_path))
    graph = linear(1, 512)
    (layer,) = _C.tune(graph, _C.parse_options({}), 1).layers
    assert any("/dot_int8" in record.key.descriptor for record in records(tmp_path))
    (layer,) = _C.tune(graph, _C.parse_options({"max_memory": "0.4"}), 1).layers
    assert "/dot_int8_" in layer.descriptor


@pytest.mark.parametrize("layer", ["dot_int8", "blocks"])
@pytest.mark.parametrize(("function", "sign"), [("add", 1), ("mul", 1), ("mul", -1)])
def test_what_follows_goes_into_scales_and_bias(layer: str, function: str, sign: int) -> None:
    """As exporters write a linear layer's bias. Scales of bytes are positive."""
    graph = softneuro.Graph()
    x = graph.input("x", (2, 64))
    if layer == "blocks":
        y = graph.add("linear_blocks", [x], weights=blocks(24, 64, 4, 32, zeros=True)[0], bits=4, block=32)
    else:
        y = graph.add("linear", [x], weights=byte_weights(24, 64))
    other = sign * np.exp2(RNG.integers(-2, 3, 24)).astype(np.float32)
    graph.output(graph.add("binary", [y], weights={"other": other}, function=function))
    values = integers(2, 64)
    (expected,) = graph.reference([values])
    graph.optimize()
    plan = _C.tune(graph, _C.parse_options({"tune": "off"}), 1)
    (chosen,) = plan.layers
    assert ("dot_int8" in chosen.descriptor) == (layer == "dot_int8" and sign == 1)
    np.testing.assert_array_equal(softneuro.Net(graph, plan).run([values])[0], expected)
