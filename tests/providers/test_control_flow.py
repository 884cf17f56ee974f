"""Bodies of If, Loop and Scan: values and weights of the outer graph, nested bodies, compiled models that hold them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from softneuro import providers
from softneuro.providers.report import events
from tests.providers.conftest import check_same, cpu_session, reasons
from tests.providers.test_ep_context import compiling, load
from tests.providers.test_sessions import f32

node, info = helper.make_node, helper.make_tensor_value_info
SHAPE = [1, 4, 6, 6]
writes_bodies = pytest.mark.skipif(
    onnxruntime.__version__.startswith("1.25."), reason="it loses the types of what bodies read when it writes a model"
)
WEIGHT = f32(4, 4, 3, 3) / 6


def graph(name: str, nodes: list[Any], inputs: list[Any], outputs: list[str], **constants: Any) -> Any:
    made = [numpy_helper.from_array(np.asarray(value), key) for key, value in constants.items()]
    return helper.make_graph(nodes, name, inputs, [info(output, TensorProto.FLOAT, None) for output in outputs], made)


def branch(name: str, factor: float) -> Any:
    """A convolution of the outer value `a` with the outer weight `w`, and a constant of its own."""
    nodes = [
        node("Conv", ["a", "w"], [f"{name}_c"], pads=[1, 1, 1, 1]),
        node("Relu", [f"{name}_c"], [f"{name}_r"]),
        node("Mul", [f"{name}_r", f"{name}_f"], [f"{name}_y"]),
    ]
    return graph(name, nodes, [], [f"{name}_y"], **{f"{name}_f": np.float32(factor)})


def serialized(main: Any, opset: int = 18) -> bytes:
    model = helper.make_model(main, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)
    return bytes(model.SerializeToString())


CONDITION, X = info("c", TensorProto.BOOL, []), info("x", TensorProto.FLOAT, SHAPE)


def chooser(opset: int = 18) -> bytes:
    """Relu, Sigmoid; If with a convolution in each branch; a convolution with the same weight, Relu."""
    nodes = [
        node("Relu", ["x"], ["a0"]),
        node("Sigmoid", ["a0"], ["a"]),
        node("If", ["c"], ["i"], then_branch=branch("then", 2), else_branch=branch("else", -3)),
        node("Conv", ["i", "w"], ["z"]),
        node("Relu", ["z"], ["y"]),
    ]
    return serialized(graph("main", nodes, [CONDITION, X], ["y"], w=WEIGHT), opset)


def claims(session: Any) -> dict[str, int]:
    return {event["graph"]: event["claimed"] for event in events(session) if event["event"] == "partition"}


def check_both_ways(ours: Any, model: bytes) -> None:
    cpu = cpu_session(model)
    for c in (True, False, True):
        check_same(ours, cpu, {"c": np.array(c), "x": f32(*SHAPE, seed=int(c))})
    assert not reasons(ours)


@pytest.mark.parametrize("opset", [11, 12, 13, 16, 19, 21, 23, 24, 25])
def test_both_branches_of_an_if(opset: int) -> None:
    model = chooser(opset)
    try:
        cpu_session(model)
    except Exception:
        assert opset >= 24, "the runtime is older than the opset"
        return
    ours = providers.session(model, tune="off")
    check_both_ways(ours, model)
    assert claims(ours) == {"then": 3, "else": 3, "main": 4}


def test_tuned_and_judged() -> None:
    """Verdicts on regions in bodies: made-up inputs, the host's version of the region with the outer weights."""
    ours = providers.session(chooser(), time_budget_s=0.2)
    cpu = cpu_session(chooser())
    for c in (True, False):
        check_same(ours, cpu, {"c": np.array(c), "x": f32(*SHAPE)}, 1e-4)


def test_weight_that_an_input_may_override() -> None:
    main = onnx.load_from_string(chooser()).graph
    main.input.append(info("w", TensorProto.FLOAT, WEIGHT.shape))
    model = serialized(main)
    ours, cpu = providers.session(model, tune="off", min_region_size=1), cpu_session(model)
    for weight in (WEIGHT, -2 * WEIGHT):
        check_same(ours, cpu, {"c": np.array(True), "x": f32(*SHAPE), "w": weight})
    assert claims(ours)["then"] == 2


def loop(opset: int = 18, nested: bool = False) -> bytes:
    """The body's value, changed by an outer weight and an outer value, in an If of the body if nested."""
    step = [node("Conv", ["v", "w"], ["b"], pads=[1, 1, 1, 1]), node("Tanh", ["b"], ["t"])]
    if nested:
        then = graph("then", [node("Add", ["t", "a"], ["p0"]), node("Relu", ["p0"], ["p"])], [], ["p"])
        other = graph("else", [node("Sub", ["t", "v"], ["q0"]), node("Conv", ["q0", "w1"], ["q"])], [], ["q"])
        step.append(node("If", ["c"], ["v_out"], then_branch=then, else_branch=other))
    else:
        step.append(node("Sub", ["t", "a"], ["v_out"]))
    body = graph(
        "body",
        [*step, node("Identity", ["go"], ["go_out"])],
        [
            info("i", TensorProto.INT64, []),
            info("go", TensorProto.BOOL, []),
            info("v", TensorProto.FLOAT, ["n", *SHAPE[1:]]),
        ],
        ["go_out", "v_out"],
    )
    body.output[0].CopyFrom(info("go_out", TensorProto.BOOL, []))
    nodes = [node("Relu", ["x"], ["a"]), node("Loop", ["count", "", "x"], ["y"], body=body)]
    inputs = [CONDITION, info("count", TensorProto.INT64, []), X]
    return serialized(graph("main", nodes, inputs, ["y"], w=WEIGHT, w1=f32(4, 4, 1, 1)), opset)


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("opset", [11, 16, 21, 23])
def test_loop(opset: int, nested: bool) -> None:
    model = loop(opset, nested)
    ours, cpu = providers.session(model, tune="off"), cpu_session(model)
    for count in (0, 1, 5):
        for c in (True, False):
            check_same(ours, cpu, {"c": np.array(c), "count": np.array(count), "x": f32(*SHAPE)})
    assert not reasons(ours)
    assert claims(ours)["body"] == (2 if nested else 3)
    assert not nested or (claims(ours)["then"], claims(ours)["else"]) == (2, 2)


def test_scan() -> None:
    body = graph(
        "body",
        [
            node("MatMul", ["s", "m"], ["p"]),
            node("Add", ["p", "e"], ["q"]),
            node("Tanh", ["q"], ["s_out"]),
            node("Relu", ["s_out"], ["r"]),
        ],
        [info("s", TensorProto.FLOAT, [2, 5]), info("e", TensorProto.FLOAT, [2, 5])],
        ["s_out", "r"],
    )
    nodes = [node("Scan", ["x", "xs"], ["last", "all"], body=body, num_scan_inputs=1)]
    inputs = [info("x", TensorProto.FLOAT, [2, 5]), info("xs", TensorProto.FLOAT, ["steps", 2, 5])]
    model = serialized(graph("main", nodes, inputs, ["last", "all"], m=f32(5, 5)))
    ours, cpu = providers.session(model, tune="off"), cpu_session(model)
    for steps in (1, 4):
        check_same(ours, cpu, {"x": f32(2, 5), "xs": f32(steps, 2, 5)})
    assert claims(ours)["body"] >= 3  # the runtime makes one op of MatMul and Add


@writes_bodies
@pytest.mark.parametrize("embed", [True, False])
def test_bodies_in_a_compiled_model(tmp_path: Path, embed: bool) -> None:
    """They are kept as they were, and their regions taken when the model is loaded."""
    model = chooser()
    path, first = compiling(model, tmp_path, embed)
    check_both_ways(first, model)
    assert claims(first) == {"then": 0, "else": 0, "main": 4}
    kept = [event["host"][0]["reason"] for event in events(first) if event.get("graph") == "then"]
    assert "body of control flow" in kept[0]
    assert [n.op_type for n in onnx.load(path).graph.node] == ["EPContext", "If", "EPContext"]
    assert len(list(tmp_path.glob("*.bin"))) == (0 if embed else 2)
    ours = load(path)
    check_both_ways(ours, model)
    assert claims(ours) == {"then": 3, "else": 3, "main": 2}


@writes_bodies
def test_loop_in_a_compiled_model(tmp_path: Path) -> None:
    model = loop(nested=True)
    path = compiling(model, tmp_path)[0]
    ours, cpu = load(path), cpu_session(model)
    for c in (True, False):
        check_same(ours, cpu, {"c": np.array(c), "count": np.array(3), "x": f32(*SHAPE)})


@writes_bodies
def test_nothing_to_compile_but_bodies(tmp_path: Path) -> None:
    """The runtime then has no reason to write a model, and the session is one as ever."""
    inside = [branch("then", 2), branch("else", -3)]
    for body in inside:
        body.node[0].input[0] = "x"
    nodes = [node("If", ["c"], ["y"], then_branch=inside[0], else_branch=inside[1])]
    model = serialized(graph("main", nodes, [CONDITION, X], ["y"], w=WEIGHT))
    path, session = compiling(model, tmp_path)
    check_both_ways(session, model)
    assert not path.exists()
    settings = onnxruntime.SessionOptions()
    settings.add_provider_for_devices(providers.library.devices(), {"tune": "off"})
    compiler = onnxruntime.ModelCompiler(settings, model, embed_compiled_data_into_model=True)
    check_both_ways(load(compiler.compile_to_bytes()), model)


@pytest.mark.parametrize("chosen", [True, False])
def test_quantization_across_bodies(chosen: bool) -> None:
    """Bytes of the outer graph that a body dequantizes, a Q whose DQ is in a body, and one that several read."""

    def body(name: str, pads: int) -> Any:
        nodes = [
            node("DequantizeLinear", ["q", "s", "z"], [f"{name}_d"]),
            node("Conv", [f"{name}_d", "w"], [f"{name}_c"], pads=[pads] * 4),
            node("QuantizeLinear", [f"{name}_c", "s", "z"], [f"{name}_q"]),
            node("DequantizeLinear", [f"{name}_q", "s", "z"], [f"{name}_y"]),
        ]
        return graph(name, nodes, [], [f"{name}_y"])

    nodes = [
        node("Relu", ["x"], ["a"]),
        node("QuantizeLinear", ["a", "s", "z"], ["q"]),
        node("If", ["c"], ["i"], then_branch=body("then", 1), else_branch=body("else", 0)),
        node("DequantizeLinear", ["q", "s", "z"], ["d"]),
        node("Conv", ["d", "w"], ["e"]),
        node("MaxPool", ["d"], ["p"], kernel_shape=[2, 2]),
        node("ReduceSum", ["i"], ["t"], keepdims=0),
        node("ReduceSum", ["e"], ["u"], keepdims=0),
        node("ReduceSum", ["p"], ["v"], keepdims=0),
        node("Sum", ["t", "u", "v"], ["y"]),
    ]
    constants = {"w": WEIGHT, "s": np.float32(0.02), "z": np.uint8(9)}
    model = serialized(graph("main", nodes, [CONDITION, X], ["y"], **constants))
    feeds = {"c": np.array(chosen), "x": f32(*SHAPE)}
    ours = providers.session(model, tune="off", never_worse=False, min_region_size=1)
    expected = cpu_session(model).run(None, feeds)[0]
    assert abs(ours.run(None, feeds)[0] - expected) <= 0.02 * abs(expected) + 2
