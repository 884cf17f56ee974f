"""Sessions: shapes that change, threads, several sessions, options, reports."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper

import softneuro
from softneuro import providers
from softneuro.providers.report import events
from tests.providers.conftest import (
    check_model,
    check_same,
    cpu_session,
    make_model,
    random_feeds,
    reasons,
    whole_session,
)
from tests.providers.scripts import run_script


def f32(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def i64(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def network(batch: int | str = "n", size: int | str = "s") -> bytes:
    """Two convolutions, a residual, a pooling and a linear layer; the reshape's target is computed from shapes."""
    node = helper.make_node
    nodes = [
        node("Conv", ["x", "w1", "b1"], ["c1"], pads=[1, 1, 1, 1]),
        node("Relu", ["c1"], ["r1"]),
        node("Conv", ["r1", "w2"], ["c2"], pads=[1, 1, 1, 1]),
        node("Add", ["c2", "r1"], ["a"]),
        node("Relu", ["a"], ["r2"]),
        node("GlobalAveragePool", ["r2"], ["p"]),
        node("Shape", ["p"], ["shape"]),
        node("Gather", ["shape", "zero"], ["n"]),
        node("Unsqueeze", ["n", "axes"], ["n1"]),
        node("Concat", ["n1", "minus"], ["target"], axis=0),
        node("Reshape", ["p", "target"], ["flat"]),
        node("Gemm", ["flat", "w3", "b3"], ["y"], transB=1),
    ]
    constants = {
        "w1": f32(8, 3, 3, 3), "b1": f32(8), "w2": f32(8, 8, 3, 3), "w3": f32(5, 8), "b3": f32(5),
        "zero": np.int64(0), "axes": i64(0), "minus": i64(-1),
    }  # fmt: skip
    return make_model(nodes, {"x": [batch, 3, size, size]}, {"y": [batch, 5]}, constants)


def test_dynamic_shapes() -> None:
    model = network()
    ours, cpu = whole_session(model), cpu_session(model)
    for n, s in [(1, 8), (3, 8), (1, 13), (2, 5), (1, 8)]:
        check_same(ours, cpu, random_feeds(cpu, {"n": n, "s": s}, seed=n + s))
    assert not reasons(ours)
    assert len([e for e in events(ours) if e["event"] == "prepared"]) == 4


def test_shapes_beyond_the_table_of_nets() -> None:
    model = network()
    ours, cpu = whole_session(model), cpu_session(model)
    for n in [*range(1, 41), 1, 20]:
        check_same(ours, cpu, random_feeds(cpu, {"n": n, "s": 4}, seed=n))
    assert not reasons(ours)


def test_empty_batch() -> None:
    model = make_model([helper.make_node("Relu", ["x"], ["y"])], {"x": ["n", 3]}, {"y": ["n", 3]})
    ours = whole_session(model)
    assert ours.run(None, {"x": np.zeros((0, 3), np.float32)})[0].shape == (0, 3)
    assert ours.run(None, {"x": np.ones((2, 3), np.float32)})[0].shape == (2, 3)


def test_unnamed_dimensions_are_not_taken_for_equal() -> None:
    node = helper.make_node("Add", ["a", "b"], ["y"])
    info = helper.make_tensor_value_info
    graph = helper.make_graph(
        [node], "g", [info(name, TensorProto.FLOAT, [None, 3]) for name in "ab"], [info("y", TensorProto.FLOAT, None)]
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10).SerializeToString()
    ours, cpu = whole_session(model), cpu_session(model)
    for rows in [(1, 4), (4, 1), (4, 4)]:
        check_same(ours, cpu, {"a": f32(rows[0], 3), "b": f32(rows[1], 3)})
    with pytest.raises(Exception, match="broadcast"):
        ours.run(None, {"a": f32(2, 3), "b": f32(4, 3)})


def test_many_threads_on_one_session() -> None:
    model = network()
    ours, cpu = whole_session(model), cpu_session(model)
    feeds = [random_feeds(cpu, {"n": 1 + i % 3, "s": 6 + i % 2}, seed=i) for i in range(24)]
    expected = [cpu.run(None, feed)[0] for feed in feeds]

    def run(index: int) -> None:
        for _ in range(5):
            np.testing.assert_allclose(ours.run(None, feeds[index])[0], expected[index], rtol=1e-4, atol=1e-4)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(run, range(len(feeds))))


def test_several_sessions() -> None:
    models = [network(), make_model([helper.make_node("Relu", ["x"], ["y"])], {"x": ["n", 3]}, {"y": ["n", 3]})]
    sessions = [(whole_session(model), cpu_session(model)) for model in models * 2]
    for ours, cpu in sessions:
        check_same(ours, cpu, random_feeds(cpu, {"n": 2, "s": 6}))
    del sessions[0]
    for ours, cpu in sessions:
        check_same(ours, cpu, random_feeds(cpu, {"n": 3, "s": 6}))


def test_runs_are_bit_identical() -> None:
    model = network(1, 16)
    ours = whole_session(model)
    feeds = random_feeds(ours)
    first = ours.run(None, feeds)[0]
    assert all(np.array_equal(first, ours.run(None, feeds)[0]) for _ in range(10))


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_pool_sizes(threads: int) -> None:
    model = network(1, 16)
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = threads
    ours, cpu = providers.session(model, settings, tune="off"), cpu_session(model)
    check_same(ours, cpu, random_feeds(cpu))
    assert next(e for e in events(ours) if e["event"] == "prepared")["threads"] == threads


@pytest.mark.parametrize("opset", [11, 13, 17, 21, 23])
def test_opsets(opset: int) -> None:
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"]),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("Flatten", ["r"], ["f"]),
        helper.make_node("Softmax", ["f"], ["y"], axis=1),
    ]
    check_model(make_model(nodes, {"x": [2, 3, 5, 5]}, {"y": None}, {"w": f32(4, 3, 3, 3)}, opset))


def test_regions_are_convex() -> None:
    """Relu -> (host op) -> Add, with Relu also feeding Add: one region with both would wait for itself."""
    nodes = [
        helper.make_node("Relu", ["x"], ["a"]),
        helper.make_node("Sigmoid", ["a"], ["b"]),
        helper.make_node("Compress", ["b", "all"], ["h"], axis=1),
        helper.make_node("Add", ["b", "h"], ["c"]),
        helper.make_node("Relu", ["c"], ["y"]),
    ]
    model = make_model(nodes, {"x": ["n", 3]}, {"y": ["n", 3]}, {"all": np.ones(3, bool)})
    ours, cpu = providers.session(model, tune="off"), cpu_session(model)
    check_same(ours, cpu, random_feeds(cpu, {"n": 4}))
    partition = events(ours)[0]
    assert partition["claimed"] == 4
    assert [node["op"] for node in partition["host"]] == ["Compress"]


def test_sizes_that_the_host_computes() -> None:
    """The reshape's target leaves one region and enters another through the host."""
    nodes = [
        helper.make_node("Relu", ["x"], ["a"]),
        helper.make_node("Sigmoid", ["a"], ["b"]),
        helper.make_node("Shape", ["b"], ["s"]),
        helper.make_node("Compress", ["b", "all"], ["h"], axis=1),
        helper.make_node("Relu", ["h"], ["c"]),
        helper.make_node("Reshape", ["c", "t"], ["d"]),
        helper.make_node("Concat", ["last", "s1"], ["t"], axis=0),
        helper.make_node("Slice", ["s", "zero", "one"], ["s1"]),
        helper.make_node("Sigmoid", ["d"], ["y"]),
    ]
    order = [0, 1, 2, 7, 6, 3, 4, 5, 8]
    constants = {"last": i64(-1), "zero": i64(0), "one": i64(1), "all": np.ones(4, bool)}
    model = make_model([nodes[i] for i in order], {"x": ["n", 4]}, {"y": None}, constants)
    ours, cpu = providers.session(model, tune="off"), cpu_session(model)
    for n in (2, 4, 2):
        check_same(ours, cpu, random_feeds(cpu, {"n": n}))
    assert events(ours)[0]["claimed"] == 8
    assert not reasons(ours)


def test_weights_as_inputs_stay_with_the_host() -> None:
    nodes = [helper.make_node("Conv", ["x", "w"], ["c"]), helper.make_node("Relu", ["c"], ["y"])]
    model = make_model(nodes, {"x": [1, 3, 5, 5], "w": [2, 3, 3, 3]}, {"y": None})
    ours, cpu = providers.session(model, tune="off"), cpu_session(model)
    check_same(ours, cpu, random_feeds(cpu))
    partition = events(ours)[0]
    assert partition["claimed"] == 0
    assert "not constant" in partition["host"][0]["reason"]


def test_overridable_initializer_is_no_constant() -> None:
    nodes = [helper.make_node("Conv", ["x", "w"], ["c"]), helper.make_node("Relu", ["c"], ["y"])]
    weight = f32(2, 3, 3, 3)
    model = make_model(nodes, {"x": [1, 3, 5, 5], "w": [2, 3, 3, 3]}, {"y": None}, {"w": weight})
    ours, cpu = providers.session(model, tune="off"), cpu_session(model)
    feeds = {"x": f32(1, 3, 5, 5)}
    check_same(ours, cpu, feeds)
    check_same(ours, cpu, {**feeds, "w": 2 * weight})


def test_min_region_size() -> None:
    nodes = [helper.make_node("Relu", ["x"], ["a"]), helper.make_node("Transpose", ["a"], ["y"])]
    model = make_model(nodes, {"x": [2, 3]}, {"y": None})
    assert events(providers.session(model, tune="off"))[0]["claimed"] == 0
    assert events(providers.session(model, tune="off", min_region_size=1))[0]["claimed"] == 2


def test_plan_file_is_shared_by_sessions(tmp_path: Path) -> None:
    path = tmp_path / "plan.txt"
    model = network(1, 16)
    first = providers.session(model, tune="off", plan=path)
    assert path.exists()
    text = path.read_text()
    second = providers.session(model, tune="off", plan=path)
    assert path.read_text() == text

    def chosen(session: Any) -> list[str]:
        return [layer["descriptor"] for e in events(session) for layer in e.get("layers", [])]

    assert chosen(first) == chosen(second)
    path.write_text("nonsense")
    with pytest.raises(Exception, match="plan"):
        providers.session(model, tune="off", plan=path)


def test_verdicts_are_measured_once() -> None:
    model = network(1, 16)
    first = events(providers.session(model, time_budget_s=1))
    again = events(providers.session(model, tune="cached"))
    judged = [event for event in first if "seconds" in event]
    assert judged
    assert [e["host"] for e in first if e["event"] == "prepared"] == [
        e["host"] for e in again if e["event"] == "prepared"
    ]
    assert [event["seconds"] for event in again if "seconds" in event] == [event["seconds"] for event in judged]
    assert not any(event.get("measured") for event in again)


def test_explain(capsys: pytest.CaptureFixture[str]) -> None:
    session = providers.session(network(1, 16), tune="off", never_worse=False)
    text = providers.explain(session)
    assert text in capsys.readouterr().out
    assert "8 of 8 nodes" in text
    assert re.search(r"softneuro runs it.*; peak \d+\.\d MiB with packed weights", text)
    assert "conv2d/cpu:float32" in text
    with pytest.raises(softneuro.Error, match="not made by"):
        providers.explain(cpu_session(network(1, 16)))


@pytest.mark.parametrize("verbose", [0, 1, 2, 3])
def test_option_verbose(tmp_path: Path, verbose: int) -> None:
    """On standard error, in a process of its own: what one session has asked for holds for all."""
    (tmp_path / "model.onnx").write_bytes(network(1, 16))
    options = f"verbose={verbose}, time_budget_s=0.3"
    done = run_script(f"providers.session({str(tmp_path / 'model.onnx')!r}, {options})")
    assert ("planned" in done.stderr) == (verbose >= 1)
    assert ("the best of" in done.stderr) == (verbose >= 2)
    assert ("us conv2d/" in done.stderr) == (verbose >= 3)


def test_report_goes_with_its_session() -> None:
    from softneuro.providers import report

    session = providers.session(network(1, 16), tune="off")
    path = report._files[session]
    assert path.exists()
    del session
    assert not path.exists()


def test_empty_tensors_are_the_hosts() -> None:
    """Whatever is around them: memory of no bytes may be nowhere."""
    nodes = [helper.make_node("Relu", ["x"], ["r"]), helper.make_node("Abs", ["r"], ["y"])]
    model = make_model(nodes, {"x": ["n", 3]}, {"y": None}, {})
    ours, cpu = providers.session(model, tune="off"), cpu_session(model)
    for n in (2, 0, 3, 0, 0):
        check_same(ours, cpu, {"x": np.ones((n, 3), np.float32)})
