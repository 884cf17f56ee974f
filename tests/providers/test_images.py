"""Images as programs have them: bytes, channels last. They enter a region as they are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

from softneuro import Graph, Net
from softneuro.providers.report import events
from tests.providers.conftest import check_model, check_same, cpu_session, make_model, random_feeds, whole_session
from tests.providers.test_ep_context import compiled, load
from tests.providers.test_sessions import f32, i64

node = helper.make_node


def network(head: list[Any], shape: list[int | str], kind: str = "UINT8", real: str = "FLOAT") -> bytes:
    """From `x` through the head to `f`; then scaled, centred and convolved."""
    dtype = np.float16 if real == "FLOAT16" else np.float32
    nodes = [
        *head,
        node("Div", ["f", "most"], ["d"]),
        node("Sub", ["d", "mean"], ["s"]),
        node("Div", ["s", "deviation"], ["q"]),
        node("Conv", ["q", "w"], ["c"], pads=[1, 1, 1, 1]),
        node("Relu", ["c"], ["y"]),
    ]
    constants = {"most": f32() * 0 + 255, "mean": abs(f32(1, 3, 1, 1)), "deviation": 0.2 + abs(f32(1, 3, 1, 1))}
    constants = {name: value.astype(dtype) for name, value in (constants | {"w": f32(8, 3, 3, 3)}).items()}
    return make_model(nodes, {"x": shape}, {"y": None}, constants, types={"x": kind, "y": real})


def cast(name: str, to: str, kind: str = "FLOAT") -> Any:
    return node("Cast", [name], [to], to=TensorProto.DataType.Value(kind))


def turned(name: str, to: str) -> Any:
    return node("Transpose", [name], [to], perm=[0, 3, 1, 2])


@pytest.mark.parametrize("kind", ["UINT8", "INT8", "INT32", "INT64", "BOOL"])
def test_integers(kind: str) -> None:
    check_model(network([cast("x", "f")], ["n", 3, 10, 9], kind), {"n": 2})


@pytest.mark.parametrize("first", ["cast", "transpose"])
def test_channels_last(first: str) -> None:
    head = [cast("x", "t"), turned("t", "f")] if first == "cast" else [turned("x", "t"), cast("t", "f")]
    check_model(network(head, [1, 10, 9, 3]))


def test_bytes_as_float16() -> None:
    check_model(network([cast("x", "f", "FLOAT16")], [1, 3, 10, 9], real="FLOAT16"), bound=1e-3)


def test_bytes_are_moved_as_they_are() -> None:
    """Cropped, reshaped and handed on, before and beside what is computed from them."""
    nodes = [
        node("Slice", ["x", "one", "nine", "two"], ["s"]),
        node("Unsqueeze", ["s", "zero"], ["u"]),
        node("Squeeze", ["u", "zero"], ["b"]),
        cast("b", "f"),
        node("Relu", ["f"], ["y"]),
    ]
    constants = {"one": i64(1), "nine": i64(9), "two": i64(2), "zero": i64(0)}
    model = make_model(
        nodes, {"x": [1, 3, 10, 8]}, {"y": None, "b": None}, constants, types={"x": "UINT8", "b": "UINT8"}
    )
    check_model(model, bound=0)


def test_the_border_is_bytes(tmp_path: Path) -> None:
    """The net is given the image itself: converting it is a step of the plan."""
    plan = tmp_path / "plan"
    whole_session(network([cast("x", "f")], [1, 3, 10, 9]), plan=plan)
    assert "adapt 0 cpu:uint8:nchw cpu:float32:nchw" in plan.read_text()


def test_integers_that_no_float_has() -> None:
    """Beyond 2^24 they become the nearest float, as with the host."""
    model = make_model([cast("x", "f"), node("Relu", ["f"], ["y"])], {"x": [4]}, {"y": None}, types={"x": "INT64"})
    x = np.array([2**24 + 1, 2**31 + 129, 2**53 + 1, 7])
    result, host = (session(model).run(None, {"x": x})[0] for session in (whole_session, cpu_session))
    np.testing.assert_array_equal(result, host)


def test_an_image_of_another_rank() -> None:
    session = whole_session(network([cast("x", "f")], ["n", 3, 10, 9]))
    with pytest.raises(Exception, match="rank"):
        session.run(None, {"x": np.zeros((3, 10, 9), np.uint8)})
    with pytest.raises(Exception, match="type"):
        session.run(None, {"x": np.zeros((1, 3, 10, 9), np.float32)})


def test_compiled_model(tmp_path: Path) -> None:
    model = network([turned("x", "t"), cast("t", "f")], [1, 10, 9, 3])
    ours, cpu = load(compiled(model, tmp_path)), cpu_session(model)
    check_same(ours, cpu, random_feeds(cpu))


def test_sizes_stay_sizes() -> None:
    """Integers that decide shapes are still known ahead, next to others that are data."""
    nodes = [
        cast("x", "f"),
        node("Relu", ["f"], ["r"]),
        node("Shape", ["r"], ["s"], start=0, end=1),
        node("Concat", ["s", "rest"], ["target"], axis=0),
        node("Reshape", ["r", "target"], ["y"]),
    ]
    model = make_model(nodes, {"x": ["n", 3, 4]}, {"y": None}, {"rest": i64(-1)}, types={"x": "UINT8"})
    check_model(model, {"n": 2}, bound=0)


FUSED = """layer 0 cast % 0
layer 1 binary % 0
layer 2 binary % 0
layer 3 binary % 0
layer 4 conv2d image_conv/cpu:uint8:nchw->cpu:float32:nchw4c/first_scalar{rows=10} 0
adapt 5 cpu:float32:nchw4c cpu:float32:nchw 0
"""
FUSED_LAST = """layer 0 transpose transpose/cpu:uint8:nchw->cpu:uint8:nhwc/view 0
layer 1 cast % 0
layer 2 binary % 0
layer 3 binary % 0
layer 4 binary % 0
layer 5 conv2d image_conv/cpu:uint8:nhwc->cpu:float32:nchw4c/first_scalar{rows=10} 0
adapt 6 cpu:float32:nchw4c cpu:float32:nchw 0
"""


@pytest.mark.parametrize("head", ["cast", "cast and transpose", "transpose and cast"])
def test_the_first_convolution_reads_bytes(tmp_path: Path, head: str) -> None:
    """What scales them and the convolution are one step, which no conversion stands before."""
    heads = {
        "cast": [cast("x", "f")],
        "cast and transpose": [cast("x", "t"), turned("t", "f")],
        "transpose and cast": [turned("x", "t"), cast("t", "f")],
    }
    model = network(heads[head], [2, 3, 10, 9] if head == "cast" else [2, 10, 9, 3])
    plan = tmp_path / "plan"
    whole_session(model, plan=plan)
    first = [line for line in plan.read_text().splitlines() if line.split()[0] in ("softneuro-plan", "plan", "seconds")]
    fused = (FUSED if head == "cast" else FUSED_LAST).splitlines()
    plan.write_text("\n".join([*first, *fused, "end", ""]))
    ours, cpu = whole_session(model, plan=plan), cpu_session(model)
    check_same(ours, cpu, random_feeds(cpu))
    chosen = [layer["descriptor"] for event in events(ours) for layer in event.get("layers", [])]
    assert chosen[-1].startswith("image_conv/cpu:uint8:")


TURNED = """softneuro-plan 2
layer 0 transpose transpose/cpu:float32:nchw->cpu:float32:nhwc/view 0
layer 1 conv2d conv2d/cpu:float32:nhwc/gemm_scalar{panel=2,split=0} 0
layer 2 transpose transpose/cpu:float32:nhwc->cpu:float32:nchw/view 0
"""


def test_transposes_at_the_border_are_no_work(tmp_path: Path) -> None:
    """As tf2onnx writes models: where a routine reads and writes channels last, nothing is copied on the way."""
    w = f32(6, 4, 1, 1)
    nodes = [turned("x", "t"), node("Conv", ["t", "w"], ["c"]), node("Transpose", ["c"], ["y"], perm=[0, 2, 3, 1])]
    model = make_model(nodes, {"x": [1, 5, 7, 4]}, {"y": None}, {"w": w})
    plan = tmp_path / "plan"
    whole_session(model, plan=plan)
    head = [line for line in plan.read_text().splitlines() if line.split()[0] in ("plan", "seconds")]
    format_line, *layers = TURNED.splitlines()
    plan.write_text("\n".join([format_line, *head, *layers, "end", ""]))
    ours, cpu = whole_session(model, plan=plan), cpu_session(model)
    check_same(ours, cpu, random_feeds(cpu))
    chosen = [layer["descriptor"] for event in events(ours) for layer in event.get("layers", [])]
    assert chosen == [line.split()[3] for line in layers]
    assert "adapt" not in plan.read_text()
    graph = Graph()
    t = graph.add("transpose", [graph.input("x", [1, 5, 7, 4])], perm=[0, 3, 1, 2])
    c = graph.add("conv2d", [t], weights={"weight": w}, stride=[1, 1], padding=[0] * 4, dilation=[1, 1], groups=1)
    graph.output(graph.add("transpose", [c], perm=[0, 2, 3, 1]))
    net = Net(graph, chosen)
    assert net.stats["steps"] == 1
    assert {blob["home"] for blob in net.memory()} == {"input 0", "output 0"}
