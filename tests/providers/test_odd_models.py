"""Models that are broken, or whose attributes and shapes make no sense: as on the CPU provider, and never a crash.

On the newest runtime only: the CPU provider of 1.25 divides by zero.
"""

from __future__ import annotations

import contextlib

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from softneuro import providers
from tests.providers.conftest import cpu_session
from tests.providers.test_bad_input import conv


def one_op(op: str, *constants: np.ndarray, shape: tuple[int | str, ...] = (1, 2, 4, 4), **attributes: object) -> bytes:
    names = [f"c{i}" for i in range(len(constants))]
    nodes = [helper.make_node("Relu", ["x"], ["r"]), helper.make_node(op, ["r", *names], ["y"], **attributes)]
    info = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes,
        "odd",
        [info("x", TensorProto.FLOAT, shape)],
        [info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(value, name) for name, value in zip(names, constants, strict=True)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    return bytes(model.SerializeToString())


def i64(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


@pytest.mark.parametrize(
    "model",
    [
        one_op("Gelu", approximate="somehow"),
        one_op("Pad", i64(0, 0, 1, 1, 0, 0, 1, 1), mode="somehow"),
        one_op("Pad", i64(0, 0, -3, 0, 0, 0, -3, 0)),  # nothing is left
        one_op("Pad", i64(0, 0, 1, 1)),
        one_op("Resize", np.zeros(0, np.float32), np.ones(4, np.float32) * 2, mode="somehow"),
        one_op("Resize", np.zeros(0, np.float32), -np.ones(4, np.float32)),
        one_op("DepthToSpace", blocksize=3),
        one_op("DepthToSpace", blocksize=0),
        one_op("DepthToSpace", blocksize=1, mode="somehow"),
        one_op("Softmax", axis=7),
        one_op("Flatten", axis=-9),
        one_op("Transpose", perm=[0, 1, 1, 3]),
        one_op("Reshape", i64(-1, -1)),
        one_op("Reshape", i64(-2, 16)),
        one_op("Reshape", i64(5, 7)),
        one_op("Squeeze", i64(1)),
        one_op("Unsqueeze", i64(9)),
        one_op("Expand", i64(1, 2, -4, 4)),
        one_op("Slice", i64(0), i64(2), i64(9)),
        one_op("Slice", i64(0), i64(2), i64(0), i64(0)),
        one_op("Split", i64(3, 3), axis=1),
        one_op("Gather", i64(5), axis=1),
        one_op("Concat", np.ones((1, 2, 3, 3), np.float32), axis=1),
        one_op("ReduceMean", i64(8)),
        one_op("MaxPool", kernel_shape=[0, 0]),
        one_op("MaxPool", kernel_shape=[3]),
        one_op("MaxPool", kernel_shape=[2, 2], strides=[0, 1]),
        one_op("AveragePool", kernel_shape=[9, 9]),
        one_op("Conv", np.ones((2, 2, 3, 3), np.float32), group=0),
        one_op("Conv", np.ones((2, 2, 3, 3), np.float32), dilations=[-1, 1]),
        one_op("Conv", np.ones((2, 3, 3, 3), np.float32)),
        one_op("Conv", np.ones((2, 2, 0, 3), np.float32)),
        one_op("ConvTranspose", np.ones((2, 2, 3, 3), np.float32), output_padding=[9, 9]),
        one_op("Gemm", np.ones((3, 3), np.float32), shape=(2, 5)),
        one_op("MatMul", np.ones((3,), np.float32), shape=()),
        one_op("BatchNormalization", *(np.ones(3, np.float32) for _ in range(4))),
        one_op("LayerNormalization", np.ones(3, np.float32), axis=-1),
        one_op("Relu", shape=(1, -2, 4)),
        one_op("Relu", bogus=1),
        one_op("NoSuchOp"),
    ],
    ids=lambda model: onnx.load_from_string(model).graph.node[1].op_type,
)
def test_what_makes_no_sense(model: bytes) -> None:
    """Refused where the CPU provider refuses it, the same result where it does not."""
    random = np.random.default_rng(0)
    dims = onnx.load_from_string(model).graph.input[0].type.tensor_type.shape.dim
    x = random.standard_normal([max(d.dim_value, 1) for d in dims]).astype(np.float32)
    expected = None
    with contextlib.suppress(Exception):
        expected = cpu_session(model).run(None, {"x": x})[0]
    if expected is None:
        with pytest.raises(Exception, match=r"\S"):
            providers.session(model, tune="off", min_region_size=1).run(None, {"x": x})
    else:
        result = providers.session(model, tune="off", min_region_size=1).run(None, {"x": x})[0]
        np.testing.assert_allclose(result, expected, 1e-5, 1e-6)


def test_missing_initializer() -> None:
    model = onnx.load_from_string(conv())
    del model.graph.initializer[:]
    with pytest.raises(Exception, match=r"(?i)\bw\b.*(output|graph|initializer)"):
        providers.session(model.SerializeToString(), tune="off")


def test_initializer_that_is_too_short() -> None:
    model = onnx.load_from_string(conv())
    model.graph.initializer[0].raw_data = model.graph.initializer[0].raw_data[:-4]
    with pytest.raises(Exception, match=r"(?i)size|bytes|raw"):
        providers.session(model.SerializeToString(), tune="off")
