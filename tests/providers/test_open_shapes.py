"""Calls that the host runs inside a region of open shapes: where sizes are known, results go straight into outputs."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import helper

from softneuro import providers
from softneuro.providers.report import events
from tests.providers.conftest import cpu_session, make_model
from tests.providers.scripts import run_script

# No net is exact enough for a region with these.
LOSING = {"max_error": 1e-30, "min_region_size": 1, "time_budget_s": 0.01}
CASES: dict[str, tuple[list[Any], dict[str, Any]]] = {}  # nodes from x, of 4 axes with 8 channels, to y; constants
SHAPES = [(1, 8, 12, 16), (2, 8, 9, 7), (1, 8, 12, 16), (3, 8, 4, 6)]


def case(name: str, *nodes: Any, **constants: Any) -> None:
    CASES[name] = (list(nodes), {key: np.asarray(value) for key, value in constants.items()})


def node(op: str, inputs: str, outputs: str = "y", **attributes: Any) -> Any:
    return helper.make_node(op, [name.strip(".") for name in inputs.split()], outputs.split(), **attributes)


WEIGHT = np.random.default_rng(1).standard_normal((8, 8, 3, 3)).astype(np.float32) / 9
INEXACT = node("Sigmoid", "x", "r")  # sums may have the host's bits on some CPUs, this never
case("conv", INEXACT, node("Conv", "r w", pads=[1, 0, 2, 1], strides=[2, 1]), w=WEIGHT)
case("dilated", INEXACT, node("Conv", "r w", dilations=[1, 2], pads=[0, 1, 0, 1]), w=WEIGHT)
case("max_pool", INEXACT, node("MaxPool", "r", kernel_shape=[3, 2], strides=[2, 3], pads=[1, 0, 1, 1]))
case("average_pool", INEXACT, node("AveragePool", "r", kernel_shape=[2, 2]))
case("global_pool", INEXACT, node("GlobalAveragePool", "r"))
case("reduce", INEXACT, node("ReduceMean", "r a", keepdims=0), a=np.int64([1, -1]))
case("reduce_all", INEXACT, node("ReduceSum", "r", keepdims=1))
case("transpose", INEXACT, node("Transpose", "r", perm=[0, 2, 3, 1]))
case("concat", INEXACT, node("Concat", "r x r", axis=2))
case("broadcast", INEXACT, node("ReduceMean", "r a", "m"), node("Add", "r m"), a=np.int64([2, 3]))
case("matmul", INEXACT, node("Transpose", "r", "t", perm=[0, 1, 3, 2]), node("MatMul", "r t"))
case("reshape", INEXACT, node("Reshape", "r s"), s=np.int64([0, 4, -1, 2]))
case("flatten", INEXACT, node("Flatten", "r", axis=2))
case("squeeze", INEXACT, node("ReduceMax", "r a", "m"), node("Squeeze", "m a"), a=np.int64([-1]))
case("unsqueeze", INEXACT, node("Unsqueeze", "r a"), a=np.int64([0, -1]))
case("slice", INEXACT, node("Slice", "r b e a"), b=np.int64([1, -3]), e=np.int64([-1, 2**60]), a=np.int64([2, 3]))
case("slice_beyond", INEXACT, node("Slice", "r b e a"), b=np.int64([0]), e=np.int64([10]), a=np.int64([3]))
case("pad", INEXACT, node("Pad", "r p"), p=np.int64([0, 0, 1, 2, 0, 1, 0, -1]))
case("split", INEXACT, node("Split", "r s", "y z", axis=1), s=np.int64([3, 5]))
case("gather", INEXACT, node("Gather", "r i", axis=1), i=np.int64([[3, 0], [1, 7]]))
case(
    "expand", INEXACT, node("ReduceMean", "r a", "m"), node("Expand", "m s"), a=np.int64([2]), s=np.int64([1, 1, 5, 1])
)
case(  # as exported for sizes that are open
    "from_shape",
    INEXACT,
    node("Shape", "r", "s"),
    node("Gather", "s zero", "n"),
    node("Gather", "s two", "h"),
    node("Unsqueeze", "n first", "n1"),
    node("Mul", "h four", "h4"),
    node("Unsqueeze", "h4 first", "h1"),
    node("Concat", "n1 rest h1", "t", axis=0),
    node("Reshape", "r t"),
    zero=np.int64(0),
    two=np.int64(2),
    four=np.int64(4),
    first=np.int64([0]),
    rest=np.int64([-1]),
)


def check(name: str, shapes: list[tuple[int, ...]] = SHAPES) -> None:
    """Its region has no net, and its results are the host's, whatever the sizes."""
    nodes, constants = CASES[name]
    outputs = dict.fromkeys(nodes[-1].output)
    model = make_model(nodes, {"x": ("n", 8, "h", "w")}, outputs, constants)
    ours, cpu = providers.session(model, **LOSING), cpu_session(model)
    random = np.random.default_rng(0)
    for shape in shapes:
        feeds = {"x": random.standard_normal(shape).astype(np.float32)}
        for result, expected in zip(ours.run(None, feeds), cpu.run(None, feeds), strict=True):
            np.testing.assert_array_equal(result, expected)
    prepared = [event["host"] for event in events(ours) if event["event"] == "prepared"]
    assert prepared
    assert prepared[0], "a net runs it"


case("resize", INEXACT, node("Resize", "r . s", mode="nearest"), s=np.float32([1, 1, 2, 2]))


@pytest.mark.parametrize("name", CASES)
def test_results(name: str) -> None:
    check(name)


@pytest.mark.parametrize("name", ["split", "from_shape", "resize"])
def test_results_are_copied_once_a_size(name: str) -> None:
    script = f"from tests.providers.test_open_shapes import *\ncheck({name!r}, SHAPES[:1] * 4)\nprint('done')"
    done = run_script(script, SOFTNEURO_ORT_FAIL="HostCopy:again")
    assert done.stdout.endswith("done\n"), done.stderr[-2000:]
    done = run_script(script, SOFTNEURO_ORT_FAIL="HostCopy")
    assert "failure injected into HostCopy" in done.stderr


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_runs_that_take_long(threads: int) -> None:
    """Then the session's own threads sleep meanwhile."""
    weight = np.random.default_rng(1).standard_normal((64, 8, 3, 3)).astype(np.float32) / 9
    model = make_model([node("Conv", "x w")], {"x": ("n", 8, "h", "w")}, {"y": None}, {"w": weight})
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    ours, cpu = providers.session(model, options, **LOSING), cpu_session(model)
    for shape in [(4, 8, 90, 80), (2, 8, 99, 97)] * 4:
        feeds = {"x": np.random.default_rng(0).standard_normal(shape).astype(np.float32)}
        np.testing.assert_array_equal(ours.run(None, feeds)[0], cpu.run(None, feeds)[0])
