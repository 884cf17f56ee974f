"""ONNX files whose weights have many zeros, in every form that such files have."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from softneuro.providers import zeros
from softneuro.providers.report import events
from tests.providers.conftest import check_model, check_same, cpu_session, make_model, random_feeds, whole_session


def with_zeros(*shape: int, share: float = 0.9, seed: int = 0) -> np.ndarray:
    random = np.random.default_rng(seed)
    values = random.standard_normal(shape).astype(np.float32).reshape(-1)
    values[random.permutation(values.size)[: round(share * values.size)]] = 0
    return values.reshape(shape)


def network(**weights: np.ndarray) -> bytes:
    node = helper.make_node
    nodes = [
        node("Conv", ["x", "w1"], ["c"], name="conv", pads=[1, 1, 1, 1]),
        node("Relu", ["c"], ["r"]),
        node("Flatten", ["r"], ["f"]),
        node("MatMul", ["f", "w2"], ["y"], name="matmul"),
    ]
    constants = {"w1": with_zeros(32, 8, 3, 3), "w2": with_zeros(32 * 64, 10, share=0.7), **weights}
    return make_model(nodes, {"x": [1, 8, 8, 8]}, {"y": [1, 10]}, constants)


def rows_of(model: bytes, folder: Path) -> dict[str, Any]:
    path = folder / "model.onnx"
    path.write_bytes(model)
    return {layer.name: layer for layer in zeros.layers(path)}


def sparse(model: bytes, names: set[str], flat: bool) -> bytes:
    """The same with some initializers in the sparse form."""
    loaded = onnx.load_from_string(model)
    for initializer in [i for i in loaded.graph.initializer if i.name in names]:
        dense = numpy_helper.to_array(initializer)
        places = np.flatnonzero(dense)
        values = numpy_helper.from_array(dense.reshape(-1)[places], initializer.name)
        index = places if flat else np.stack(np.unravel_index(places, dense.shape), 1)
        indices = numpy_helper.from_array(index.astype(np.int64), f"{initializer.name}_indices")
        loaded.graph.sparse_initializer.append(helper.make_sparse_tensor(values, indices, list(dense.shape)))
        loaded.graph.initializer.remove(initializer)
    return bytes(loaded.SerializeToString())


def test_plain_zeros(tmp_path: Path) -> None:
    check_model(network())
    rows = rows_of(network(), tmp_path)
    assert rows["conv"].zeros == pytest.approx(0.9, abs=1e-3)
    assert (rows["conv"].type, rows["conv"].shape) == ("Conv", (32, 8, 3, 3))
    assert rows["matmul"].zeros == pytest.approx(0.7, abs=1e-3)
    assert rows["matmul"].shape == (10, 32 * 64)


@pytest.mark.parametrize("flat", [True, False])
def test_sparse_initializers_are_weights_as_any(tmp_path: Path, flat: bool) -> None:
    names = {"w1"} if not flat else {"w1", "w2"}  # of rank 4, the runtime reads flat indices alone
    model = sparse(network(), names, flat=True)
    ours, cpu = whole_session(model), cpu_session(network())
    check_same(ours, cpu, random_feeds(cpu))
    (prepared,) = (event for event in events(ours) if event["event"] == "prepared")
    assert {layer["type"] for layer in prepared["layers"]} >= {"conv2d", "linear"}
    assert rows_of(sparse(network(), names, flat), tmp_path) == rows_of(network(), tmp_path)


def test_masks_that_are_still_there(tmp_path: Path) -> None:
    weight, mask = with_zeros(32, 64, share=0), np.ones((32, 64), np.float32)
    mask[:, :48] = 0
    nodes = [
        helper.make_node("Mul", ["mask", "w"], ["masked"]),
        helper.make_node("Transpose", ["masked"], ["turned"], perm=[1, 0]),
        helper.make_node("MatMul", ["x", "turned"], ["y"], name="m"),
        helper.make_node("Relu", ["y"], ["z"]),
    ]
    model = make_model(nodes, {"x": [4, 64]}, {"z": [4, 32]}, {"w": weight, "mask": mask})
    assert rows_of(model, tmp_path)["m"].zeros == 0.75
    check_model(model)


@pytest.mark.parametrize("zero", [127, 128, 0])
def test_of_bytes_the_zero_point_is_zero(tmp_path: Path, zero: int) -> None:
    node = helper.make_node
    stored = np.random.default_rng(0).integers(zero + 1, zero + 100, (32, 64)).astype(np.uint8)
    stored[::2, ::2] = stored[1::2, 1::2] = zero
    constants = {"w": stored, "s": np.float32(0.1), "z": np.uint8(zero), "one": np.uint8(1)}
    nodes = [
        node("DequantizeLinear", ["w", "s", "z"], ["dw"]),
        node("Gemm", ["x", "dw"], ["y"], name="gemm", transB=1),
        node("QuantizeLinear", ["y", "s", "one"], ["q"]),
        node("QLinearMatMul", ["q", "s", "one", "w", "s", "z", "s", "one"], ["o"], name="product"),
    ]
    model = make_model(nodes, {"x": [1, 64]}, {"y": [1, 32], "o": [1, 64]}, constants, types={"o": "UINT8"})
    rows = rows_of(model, tmp_path)
    assert [(name, row.zeros) for name, row in rows.items()] == [("gemm", 0.5), ("product", 0.5)]
    assert rows["gemm"].pattern == "2:4"


def test_halves(tmp_path: Path) -> None:
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"], name="m"), helper.make_node("Relu", ["y"], ["z"])]
    weight = with_zeros(64, 48).astype(np.float16)
    types = dict.fromkeys("xyz", "FLOAT16")
    model = make_model(nodes, {"x": [4, 64]}, {"z": [4, 48]}, {"w": weight}, types=types)
    assert rows_of(model, tmp_path)["m"].zeros == pytest.approx(0.9, abs=1e-3)
    check_model(model, bound=2e-3)


def test_command(tmp_path: Path) -> None:
    from tests.providers.test_cli import call

    path = tmp_path / "model.onnx"
    path.write_bytes(network())
    plain = call("sparsity", path, "-O", "tune=off")
    assert plain.exit_code == 0, plain.output
    assert "90.0 %" in plain.output
    assert "ms" not in plain.output
    done = call("sparsity", path, "--json", "-O", "time_budget_s=2", "-O", "never_worse=0")
    assert done.exit_code == 0, done.output
    data = json.loads(done.stdout)
    assert {layer["name"] for layer in data["layers"]} == {"conv", "matmul"}
    assert all(layer["dense_s"] > 0 for layer in data["layers"])
    assert 0 < data["plan_s"] <= data["dense_s"] * 1.1
