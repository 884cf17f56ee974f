"""What tells routines, graphs and costs apart: whole schemas, element types, borders and patterns of weights."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

import softneuro
from softneuro import _C, Graph
from tests.tune.records import records

SCHEMA = r"cpu:[a-z0-9]+:[a-z0-9_]+"


def weight(zeros: float, seed: int = 0) -> npt.NDArray[np.float32]:
    rng = np.random.default_rng(seed)
    values = rng.standard_normal((32, 64), dtype=np.float32)
    values[rng.random(values.shape) < zeros] = 0
    return values


def linear(values: npt.NDArray[np.float32], schema: str = "float32") -> Graph:
    graph = Graph()
    x = graph.input("x", (4, 64), schema)
    if not schema.startswith(("float32", "cpu:float32")):
        x = graph.add("cast", [x])
    graph.output(graph.add("linear", [x], weights={"weight": values}))
    return graph


def test_descriptors_name_whole_schemas() -> None:
    registered = softneuro.registry()
    descriptors = [entry["descriptor"] for entry in registered]
    assert len(set(descriptors)) == len(descriptors)
    for entry in registered:
        schema = entry["descriptor"].split("/")[1]
        assert re.fullmatch(rf"{SCHEMA}(,{SCHEMA})*(\+{SCHEMA})?(->{SCHEMA})?", schema), schema
        assert re.split(r"[+,]", schema.split("->")[-1])[0] == entry["out"]


def test_graphs_are_told_apart_by_their_borders() -> None:
    image = (1, 8, 5, 5)

    def pooled(schema: str, out: str | None = None) -> Graph:
        graph = Graph()
        x = graph.input("x", image, schema)
        graph.output(graph.add("reshape", [x], shape=[8, 25]), out)
        return graph

    graphs = [pooled("float32"), pooled("cpu:float32:nhwc"), pooled("bfloat16"), pooled("float32", "bfloat16")]
    assert len({graph.structural_hash() for graph in graphs}) == len(graphs)
    integers = [pooled("uint8"), pooled("int8"), pooled("int64"), pooled("bool")]
    assert len({graph.structural_hash() for graph in integers}) == len(integers)


def test_graphs_are_told_apart_by_the_types_of_their_weights() -> None:
    """What may read weights where they are depends on it; a plan for one need not fit the other."""

    def model(value: object) -> Graph:
        graph = Graph()
        graph.output(graph.add("linear", [graph.input("x", (2, 64))], weights={"weight": value}))
        return graph

    values = np.ones((32, 64), np.float32) + np.arange(64, dtype=np.float32)
    graphs = [model(values), model(values.astype(np.float16)), model((values.astype(np.uint16), "bfloat16"))]
    assert [graph.layers()[0]["weight_types"]["weight"] for graph in graphs] == ["float32", "float16", "bfloat16"]
    assert len({graph.structural_hash() for graph in graphs}) == len(graphs)
    with pytest.raises(softneuro.Error, match="uint16"):
        model((values, "bfloat16"))
    for given, suffix in (
        (values, ""),
        (values.astype(np.float16), "float16_"),
        ((values.astype(np.uint16), "bfloat16"), "bfloat16_"),
    ):
        accepted = _C.testing.accepting("linear", {}, {"weight": given}, [(2, 64)])
        dots = {descriptor.split("/")[2].split("{")[0] for descriptor in accepted if "/dot_" in descriptor}
        assert dots == {f"dot_{suffix}{isa}" for isa in softneuro.available_isas()}


def test_plans_are_told_apart_by_what_is_special_about_weights() -> None:
    dense, other, pruned, sparser = (linear(weight(zeros)) for zeros in (0.0, 0.05, 0.8, 0.95))
    assert dense.structural_hash() == other.structural_hash() == linear(weight(0.0, seed=5)).structural_hash()
    assert len({graph.structural_hash() for graph in (dense, pruned, sparser)}) == 3
    assert pruned.structural_hash() == linear(weight(0.8, seed=5)).structural_hash()
    assert "[zeros=0.8," in pruned.canonical()


@pytest.mark.parametrize(
    ("text", "make"),
    [
        ("2:4", lambda w: w.reshape(-1, 4).__setitem__((slice(None), slice(0, 2)), 0)),
        ("16x1", lambda w: w.__setitem__((slice(0, 16), slice(0, 40)), 0)),
        ("1x4", lambda w: w.reshape(32, 16, 4).__setitem__(np.indices((32, 16)).sum(0) % 2 == 0, 0)),
    ],
)
def test_patterns_are_recognised(text: str, make: object) -> None:
    values = np.ones((32, 64), np.float32)
    values += np.random.default_rng(0).random(values.shape, dtype=np.float32)
    make(values)  # type: ignore[operator]
    canonical = linear(values).canonical()
    assert f"{text}]" in canonical or f"{text}," in canonical, canonical


def test_zero_is_zero_with_either_sign_and_nan_is_not() -> None:
    values = weight(0.9)
    values[values == 0] = -0.0
    assert "[zeros=0.9," in linear(values).canonical()
    values[:] = np.nan
    assert "zeros" not in linear(values).canonical()


def test_costs_of_pruned_layers_are_those_of_dense_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """But for routines that make use of zeros, which are measured once for each class of pattern."""
    monkeypatch.setenv("SOFTNEURO_CACHE_DIR", str(tmp_path))
    options = {"threads": 1, "time_budget_s": "2"}
    halves = weight(0.0)
    halves[:, ::2] = 0
    dense, pruned, again, other = (
        softneuro.tune(linear(values), options).counts
        for values in (weight(0.0), weight(0.9), weight(0.9, seed=5), halves)
    )
    for counts in (pruned, other):
        assert counts["recalled"] == dense["candidates"]
        assert counts["measured"] == counts["candidates"] - counts["recalled"] > 0
    assert again["measured"] == 0
    tried = [record.key.signature for record in records(tmp_path) if "/sparse_dot" in record.key.descriptor]
    assert any("[zeros=0.9," in signature for signature in tried)
    assert any("2:4" in signature for signature in tried)


def test_costs_of_another_format_are_measured_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOFTNEURO_CACHE_DIR", str(tmp_path))
    options = {"threads": 1, "time_budget_s": "2"}
    first = softneuro.tune(linear(weight(0.0)), options)
    assert first.counts["measured"] > 0
    costs = next(path for path in tmp_path.rglob("*.txt") if "sn3 " in path.read_text())
    costs.write_text(costs.read_text().replace("sn3 ", "sn2 "))
    # A process of its own would read the file anew; so does another directory's database.
    moved = tmp_path / "moved"
    moved.mkdir()
    costs.rename(moved / costs.name)
    monkeypatch.setenv("SOFTNEURO_CACHE_DIR", str(moved))
    assert softneuro.tune(linear(weight(0.0)), options).counts["measured"] == first.counts["measured"]


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ("float8", "unknown dtype 'float8'"),
        ("tpu:float32:nchw", "unknown platform 'tpu'"),
        ("cpu:float32:nchw3c", "unknown layout 'nchw3c'"),
        ("qint8", "qint8 has no values without"),
        ("cpu:float32:nchw_strided", "a strided layout cannot be at the border"),
        ("cpu:float32:nhwc", "layout nhwc does not fit shape 4x64"),
    ],
)
def test_borders_that_cannot_be(schema: str, message: str) -> None:
    with pytest.raises(softneuro.Error, match=message):
        Graph().input("x", (4, 64), schema)


def test_integers_are_no_reals() -> None:
    graph = Graph()
    x = graph.input("x", (2, 3), "int64")
    with pytest.raises(softneuro.Error, match=r"2x3:int\) has no real values"):
        graph.add("activation", [x], function="relu")
    with pytest.raises(softneuro.Error, match="float32 does not hold integers"):
        graph.output(x, "float32")


def test_inputs_of_another_type_are_refused() -> None:
    graph = Graph()
    graph.output(graph.input("x", (2, 3), "uint8"))
    net = softneuro.Net(graph)
    (same,) = net.run([np.arange(6, dtype=np.uint8).reshape(2, 3)])
    assert same.dtype == np.uint8
    np.testing.assert_array_equal(same, np.arange(6).reshape(2, 3))
    with pytest.raises(softneuro.Error, match="elements of type float32, the net was prepared for uint8"):
        net.run([np.zeros((2, 3), np.float32)])
    with pytest.raises(softneuro.Error, match="has shape 2x3x1"):
        net.run([np.zeros((2, 3, 1), np.uint8)])


def test_channels_last_borders() -> None:
    graph = Graph()
    x = graph.input("x", (2, 16, 5, 7), "cpu:float32:nhwc")
    graph.output(graph.add("activation", [x], function="relu"), "cpu:float32:nhwc")
    values = np.random.default_rng(0).standard_normal((2, 5, 7, 16), dtype=np.float32).transpose(0, 3, 1, 2)
    (result,) = softneuro.Net(graph).run([values])
    np.testing.assert_array_equal(result, np.maximum(values, 0))
    assert result.strides == values.strides


def test_parts_of_one_projection_are_views() -> None:
    """Queries and keys of one projection, heads apart: no copy until the product reads them."""
    graph = Graph()
    batch, length, heads, width = 2, 10, 4, 16
    x = graph.input("x", (batch, length, 3 * heads * width))

    def part(index: int) -> int:
        size = heads * width
        flat = graph.add("slice", [x], axis=2, start=index * size, end=(index + 1) * size)
        apart = graph.add("reshape", [flat], shape=[batch, length, heads, width])
        return graph.add("transpose", [apart], perm=[0, 2, 1, 3])

    graph.output(graph.add("matmul", [part(0), part(1)], transpose_b=1))
    values = np.random.default_rng(0).standard_normal((batch, length, 3 * heads * width), dtype=np.float32)
    net = softneuro.Net(graph, softneuro.tune(graph, {"threads": 1, "tune": "off"}))
    assert net.stats["steps"] == 1
    np.testing.assert_allclose(net.run([values])[0], graph.reference([values])[0], rtol=1e-4, atol=1e-4)
    assert _C.testing.accepting("slice", {"axis": 2, "start": 1, "end": 3}, {}, [(2, 3, 5)])
