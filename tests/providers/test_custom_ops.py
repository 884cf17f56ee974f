"""The domain com.softneuro: right with every routine, in any layout, and clear about what it refuses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import softneuro
from softneuro import providers
from tests.providers.conftest import cpu_session, make_model, random_feeds, relative_error
from tests.providers.scripts import run_script
from tests.providers.test_sessions import f32, network

DOMAIN = "com.softneuro"


def ops_session(model: bytes | str) -> Any:
    settings = onnxruntime.SessionOptions()
    settings.register_custom_ops_library(providers.get_library_path())
    settings.log_severity_level = 4
    return onnxruntime.InferenceSession(model, settings, providers=["CPUExecutionProvider"])


def one_node(
    op: str, x: list[int | str], constants: list[np.ndarray], domain: str = DOMAIN, **attributes: object
) -> bytes:
    names = [f"c{i}" for i in range(len(constants))]
    node = helper.make_node(op, ["x", *names], ["y"], name="mine", domain=domain, **attributes)
    info = helper.make_tensor_value_info
    graph = helper.make_graph(
        [node],
        "g",
        [info("x", TensorProto.FLOAT, x)],
        [info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(value, name) for value, name in zip(constants, names, strict=True)],
    )
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid(DOMAIN, 1)]
    return bytes(helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString())


CONVS = [
    ([2, 3, 9, 8], (4, 3, 3, 3), {"pads": [1, 0, 1, 2], "strides": [2, 1]}),
    ([1, 8, 7, 7], (8, 1, 3, 3), {"group": 8, "pads": [1, 1, 1, 1]}),
    (["n", 16, "h", 6], (16, 16, 1, 1), {}),
    ([1, 4, 20], (6, 2, 3), {"dilations": [2], "group": 2}),
]


@pytest.mark.parametrize(("x", "w", "attributes"), CONVS)
@pytest.mark.parametrize("bias", [False, True])
def test_conv(x: list[int | str], w: tuple[int, ...], attributes: dict[str, Any], bias: bool) -> None:
    constants = [f32(*w), *([f32(w[0], seed=1)] if bias else [])]
    ours, cpu = (
        ops_session(one_node("Conv", x, constants, **attributes)),
        cpu_session(one_node("Conv", x, constants, "", **attributes)),
    )
    feeds = random_feeds(cpu, {"n": 3, "h": 5})
    result, expected = ours.run(None, feeds)[0], cpu.run(None, feeds)[0]
    assert relative_error(result, expected) <= 1e-5
    declared = ours.get_outputs()[0].shape
    assert len(declared) == expected.ndim
    assert all(not isinstance(d, int) or d == e for d, e in zip(declared, expected.shape, strict=True))
    if "n" not in x:
        assert list(declared) == list(expected.shape)


def test_every_routine_of_conv_and_linear_by_name() -> None:
    """Each routine runs, or declines with its reason."""
    ran, reasons = set(), []
    for entry in softneuro.registry():
        if entry["layer"] not in {"conv2d", "linear"} or not entry["available"]:
            continue
        if entry["layer"] == "conv2d":
            op, x, constants, attributes = "Conv", [1, 16, 12, 12], [f32(16, 16, 3, 3)], {"pads": [1, 1, 1, 1]}
            reference = cpu_session(one_node("Conv", x, constants, "", **attributes))
        else:
            op, x, constants, attributes = "Linear", [5, 32], [f32(24, 32)], {}
            reference = cpu_session(one_node("MatMul", x, [constants[0].T.copy()], ""))
        feeds = random_feeds(reference)
        ours = ops_session(one_node(op, x, constants, routine=entry["descriptor"], **attributes))
        try:
            result = ours.run(None, feeds)[0]
        except Exception as error:
            reasons.append(str(error))
            continue
        assert relative_error(result, reference.run(None, feeds)[0]) <= 1e-4
        ran.add(op)
    assert ran == {"Conv", "Linear"}
    assert all("declines" in reason for reason in reasons)


def test_sparse_conv() -> None:
    """By a routine that makes use of zeros, or not at all."""
    weight = f32(32, 16, 3, 3)
    given: dict[str, Any] = {"x": [1, 16, 12, 12], "pads": [1, 1, 1, 1]}
    feeds = {"x": f32(1, 16, 12, 12, seed=1)}
    with pytest.raises(Exception, match="no sparse routine accepts the layer"):
        ops_session(one_node("SparseConv2d", constants=[weight], **given)).run(None, feeds)
    weight[np.random.default_rng(0).random(weight.shape) < 0.9] = 0
    session = ops_session(one_node("SparseConv2d", constants=[weight, f32(32)], activation="relu", **given))
    assert session.get_outputs()[0].shape == [1, 32, 12, 12]
    plain = cpu_session(one_node("Conv", constants=[weight, f32(32)], domain="", **given))
    expected = np.maximum(plain.run(None, feeds)[0], 0)
    assert relative_error(session.run(None, feeds)[0], expected) <= 1e-5


def test_fused_sparse_conv() -> None:
    weights = [f32(32, 8, 3, 3), f32(32), f32(16, 32, 3, 3), f32(16)]
    for weight in weights[::2]:
        weight[np.random.default_rng(0).random(weight.shape) < 0.9] = 0
    stages = {"first_pads": [1, 1, 1, 1], "first_activation": "relu", "second_strides": [2, 2]}
    x = f32(2, 8, 12, 11, seed=1)
    first = cpu_session(one_node("Conv", ["n", 8, "h", "w"], weights[:2], "", pads=[1, 1, 1, 1])).run(None, {"x": x})[0]
    for biases in (1, 2):
        second = cpu_session(one_node("Conv", ["n", 32, "h", "w"], weights[2 : 2 + biases], "", strides=[2, 2]))
        expected = second.run(None, {"x": np.maximum(first, 0)})[0]
        ours = ops_session(one_node("FusedSparseConv2d", ["n", 8, 12, 11], weights[: 2 + biases], **stages))
        assert ours.get_outputs()[0].shape[1:] == list(expected.shape[1:])
        assert relative_error(ours.run(None, {"x": x})[0], expected) <= 1e-5
    with pytest.raises(Exception, match="FusedSparseConv2d 'mine': it takes weights of rank 4"):
        ops_session(one_node("FusedSparseConv2d", [1, 8, 12], [f32(4, 8, 3), f32(4), f32(4, 4, 3)]))


def test_linear_and_activation() -> None:
    weight, bias = f32(7, 5), f32(7, seed=2)
    ours = ops_session(one_node("Linear", ["n", 3, 5], [weight, bias], activation="relu"))
    for n in (1, 4):
        x = f32(n, 3, 5, seed=n)
        np.testing.assert_allclose(
            ours.run(None, {"x": x})[0], np.maximum(x @ weight.T + bias, 0), rtol=1e-4, atol=1e-5
        )
    assert ours.run(None, {"x": np.zeros((0, 3, 5), np.float32)})[0].shape == (0, 3, 7)


@pytest.mark.parametrize("layout", ["nhwc", "nchw4c", "nchw8c", "nchw16c"])
def test_adapt_there_and_back(layout: str) -> None:
    x = f32(2, 19, 5, 4)
    there = ops_session(one_node("Adapt", [2, 19, "h", 4], [], to=layout)).run(None, {"x": x})[0]
    if layout == "nhwc":
        np.testing.assert_array_equal(there, x.transpose(0, 2, 3, 1))
    else:
        c = int(layout[4:-1])
        padded = np.zeros((2, -(-19 // c) * c, 5, 4), np.float32)
        padded[:, :19] = x
        np.testing.assert_array_equal(there, padded.reshape(2, -1, c, 5, 4).transpose(0, 1, 3, 4, 2))
    back = one_node("Adapt", list(there.shape), [], **{"from": layout}, to="nchw", channels=19)
    np.testing.assert_array_equal(ops_session(back).run(None, {"x": there})[0], x)
    other = ops_session(one_node("Adapt", list(there.shape), [], **{"from": layout}, to="nhwc", channels=19))
    np.testing.assert_array_equal(other.run(None, {"x": there})[0], x.transpose(0, 2, 3, 1))


W = f32(4, 3, 3, 3)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (one_node("Conv", [1, 3, 8, 8], [W], strides=[1]), "strides has 1 values, not 2"),
        (one_node("Conv", [1, 3, 8, 8], [W], strides=[0, 1]), "strides must be 1 or more"),
        (one_node("Conv", [1, 3, 8, 8], [W], pads=[-1, 0, 0, 0]), "pads must be 0 or more"),
        (one_node("Conv", [1, 3, 8, 8], [W], group=0), "group must be"),
        (one_node("Conv", [1, 5, 8, 8], [W]), "5 channels"),
        (one_node("Conv", [1, 3, 2, 8], [W]), "kernel is larger"),
        (one_node("Conv", [1, 3, 8, 8], [W], routine="conv2d/cpu:float32:nchw/magic"), "routine|magic"),
        (one_node("Conv", [1, 3, 8, 8], [W], routine="magic"), "magic"),
        (
            one_node("Conv", [1, 3, 8, 8], [W], routine="conv2d/cpu:float32:nchw/direct_scalar{rows=-1,split=0}"),
            "does not offer",
        ),
        (one_node("Conv", [1, 3, 8, 8], [W], activation="elu"), "parameters"),
        (one_node("Conv", [1, 3, 8, 8], [W], activation="swoosh"), "swoosh"),
        (one_node("Conv", [1, 3, 8, 8], [W], strides="two"), "strides"),
        (one_node("Conv", [1, 3, 8, 8], []), "(?i)weight|input"),
        (one_node("Linear", [2, 5], [f32(4, 6)]), "ends in 5"),
        (one_node("Adapt", [1, 3, 8, 8], [], to="nchw5c"), "nchw5c"),
        (one_node("Adapt", [1, 2, 8, 8, 7], [], **{"from": "nchw8c"}), "nchw8c"),
    ],
)
def test_what_is_refused(model: bytes, message: str) -> None:
    with pytest.raises(Exception, match=message):
        ops_session(model).run(None, {"x": random_feeds(cpu_session_input(model))["x"]})


def cpu_session_input(model: bytes) -> Any:
    """Something with the model's inputs."""
    proto = onnx.load_from_string(model)
    dims = [d.dim_value for d in proto.graph.input[0].type.tensor_type.shape.dim]
    return cpu_session(make_model([helper.make_node("Relu", ["x"], ["y"])], {"x": dims}, {"y": None}))


def test_weights_must_be_constant() -> None:
    node = helper.make_node("Conv", ["x", "w"], ["y"], domain=DOMAIN)
    info = helper.make_tensor_value_info
    inputs = [info("x", TensorProto.FLOAT, [1, 3, 8, 8]), info("w", TensorProto.FLOAT, [4, 3, 3, 3])]
    graph = helper.make_graph([node], "g", inputs, [info("y", TensorProto.FLOAT, None)])
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid(DOMAIN, 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString()
    with pytest.raises(Exception, match="must be an initializer"):
        ops_session(model)


def test_provider_and_ops_in_one_session(tmp_path: Path) -> None:
    providers.convert(network(1, 16), tmp_path / "out.onnx", tune="off")
    settings = onnxruntime.SessionOptions()
    settings.register_custom_ops_library(providers.get_library_path())
    ours = providers.session(tmp_path / "out.onnx", settings, tune="off")
    cpu = cpu_session(network(1, 16))
    feeds = random_feeds(cpu)
    assert relative_error(ours.run(None, feeds)[0], cpu.run(None, feeds)[0]) <= 1e-5


def test_convert(tmp_path: Path) -> None:
    model = network(1, 16)
    replaced = providers.convert(model, tmp_path / "out.onnx", plan=tmp_path / "plan.txt", tune="off")
    nodes = onnx.load(tmp_path / "out.onnx").graph.node
    ours = [node for node in nodes if node.domain == DOMAIN]
    assert sorted(node.op_type for node in ours) == ["Conv", "Conv", "Linear"]
    assert len(replaced) == 3
    assert all(descriptor.split("/")[0] in {"conv2d", "linear"} for descriptor in replaced.values())
    plan = (tmp_path / "plan.txt").read_text()
    assert all(descriptor.split("{")[0] in plan for descriptor in replaced.values())
    session, cpu = ops_session(str(tmp_path / "out.onnx")), cpu_session(model)
    feeds = random_feeds(cpu)
    assert relative_error(session.run(None, feeds)[0], cpu.run(None, feeds)[0]) <= 1e-5
    again = providers.convert(model, tmp_path / "again.onnx", plan=tmp_path / "plan.txt", tune="off")
    assert again == replaced
    with pytest.raises(softneuro.Error, match="no convolution"):
        providers.convert(
            make_model([helper.make_node("Relu", ["x"], ["y"])], {"x": [2]}, {"y": [2]}),
            tmp_path / "no.onnx",
            tune="off",
        )


def test_convert_open_shapes(tmp_path: Path) -> None:
    providers.convert(network(), tmp_path / "out.onnx", tune="off")
    session, cpu = ops_session(str(tmp_path / "out.onnx")), cpu_session(network())
    for n, s in [(1, 8), (3, 5)]:
        feeds = random_feeds(cpu, {"n": n, "s": s})
        assert relative_error(session.run(None, feeds)[0], cpu.run(None, feeds)[0]) <= 1e-5


@pytest.mark.parametrize("place", ["RegisterCustomOps", "CreateKernel", "KernelCompute"])
def test_exceptions_never_leave_a_callback(place: str) -> None:
    script = "ops_session(one_node('Conv', [1, 3, 8, 8], [W])).run(None, {'x': f32(1, 3, 8, 8)})"
    done = run_script(f"from tests.providers.test_custom_ops import *\n{script}", SOFTNEURO_ORT_FAIL=place)
    assert done.returncode == 1
    assert f"failure injected into {place}" in done.stderr


@pytest.mark.parametrize("place", ["InferOutputShape", "KernelDestroy"])
def test_where_the_runtime_goes_on(place: str) -> None:
    """Without a shape the runtime finds it when it runs."""
    script = "ops_session(one_node('Conv', [1, 3, 8, 8], [W])).run(None, {'x': f32(1, 3, 8, 8)})"
    done = run_script(f"from tests.providers.test_custom_ops import *\n{script}", SOFTNEURO_ORT_FAIL=place)
    assert done.returncode == 0, done.stderr[-2000:]
