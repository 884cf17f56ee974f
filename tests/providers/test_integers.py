"""Integers, booleans and rows that integers choose, as layers: exactly what the CPU provider gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

from softneuro.providers.report import events
from tests.providers.conftest import cpu_session, make_model, reasons, relative_error, whole_session
from tests.providers.test_ops import f32, i64

node = helper.make_node
TYPES = {"n": "INT64", "k": "INT32", "m": "BOOL", "row": "INT64"}
INPUTS = {"x": (4, 5), "n": (4, 5), "k": (4, 5), "m": (4, 5), "row": (1, 5)}
LOW = np.float32(np.finfo(np.float32).min)

# Each name stands for ops from the inputs to y, whose type is last, and constants.
CASES: dict[str, tuple[list[Any], str, dict[str, np.ndarray]]] = {
    "where": ([node("Where", ["m", "x", "c"], ["y"])], "FLOAT", {"c": LOW}),
    "where int64": ([node("Where", ["m", "n", "row"], ["y"])], "INT64", {}),
    "where int32": ([node("Not", ["m"], ["b"]), node("Where", ["b", "k", "c"], ["y"])], "INT32", {"c": np.int32(7)}),
    "equal": ([node("Equal", ["n", "row"], ["y"])], "BOOL", {}),
    "less": ([node("Less", ["k", "c"], ["y"])], "BOOL", {"c": np.int32(1)}),
    "less or equal": ([node("LessOrEqual", ["x", "c"], ["y"])], "BOOL", {"c": f32(5)}),
    "greater": ([node("Greater", ["n", "c"], ["y"])], "BOOL", {"c": i64(0)}),
    "greater or equal": ([node("GreaterOrEqual", ["row", "n"], ["y"])], "BOOL", {}),
    "and, or, xor": (
        [
            node("Greater", ["n", "c"], ["b"]),
            node("And", ["m", "b"], ["d"]),
            node("Or", ["m", "b"], ["e"]),
            node("Xor", ["d", "e"], ["y"]),
        ],
        "BOOL",
        {"c": i64(0)},
    ),
    "add": ([node("Add", ["n", "row"], ["y"])], "INT64", {}),
    "wraps": ([node("Mul", ["n", "c"], ["y"])], "INT64", {"c": i64(2**62 + 1)}),
    "wraps, too": ([node("Sub", ["c", "k"], ["y"])], "INT32", {"c": np.int32(-(2**31))}),
    "cumsum": ([node("CumSum", ["n", "c"], ["y"])], "INT64", {"c": np.int64(-1)}),
    "sum": ([node("ReduceSum", ["n", "c"], ["y"])], "INT64", {"c": i64(-1)}),
    "sum of all": ([node("ReduceSum", ["k"], ["b"], keepdims=0), node("Add", ["b", "k"], ["y"])], "INT32", {}),
    "cumsum from the end": (
        [node("CumSum", ["k", "c"], ["s"], reverse=1, exclusive=1), node("Add", ["s", "k"], ["y"])],
        "INT32",
        {"c": np.int64(0)},
    ),
    "argmax": ([node("ArgMax", ["n"], ["a"], axis=1), node("Add", ["a", "n"], ["y"])], "INT64", {}),
    "argmin, the last": (
        [node("ArgMin", ["n"], ["a"], axis=0, keepdims=0, select_last_index=1), node("Add", ["a", "n"], ["y"])],
        "INT64",
        {},
    ),
    "argmax of reals": (
        [node("Div", ["x", "c"], ["q"]), node("ArgMax", ["q"], ["a"], axis=-2), node("Add", ["a", "n"], ["y"])],
        "INT64",
        {"c": np.array([0, 1, np.nan, 2, np.inf], np.float32)},
    ),
    "by elements": (
        [node("GatherElements", ["n", "c"], ["g"], axis=1), node("Add", ["g", "one"], ["y"])],
        "INT64",
        {"c": i64(0, -1, 4, 2, -5, 1, 1, 0).reshape(4, 2), "one": i64(1)},
    ),
    "reals by elements": (
        [node("GatherElements", ["x", "i"], ["g"]), node("Add", ["g", "g"], ["y"])],
        "FLOAT",
        {"i": i64(-4, 3, 0, -1, 2).reshape(1, 5)},
    ),
    "cast to bool": ([node("Cast", ["n"], ["y"], to=TensorProto.BOOL)], "BOOL", {}),
    "cast to int64": ([node("Cast", ["x"], ["y"], to=TensorProto.INT64)], "INT64", {}),
    "cast to float": ([node("Cast", ["m"], ["b"], to=1), node("Mul", ["b", "x"], ["y"])], "FLOAT", {}),
    "expand": ([node("Expand", ["row", "c"], ["b"]), node("Add", ["b", "n"], ["y"])], "INT64", {"c": i64(4, 1)}),
    "moves": (
        [
            node("Transpose", ["n"], ["t"]),
            node("Unsqueeze", ["t", "c"], ["u"]),
            node("Slice", ["u", "one", "far", "one"], ["s"]),
            node("Concat", ["s", "s"], ["d"], axis=2),
            node("Add", ["d", "one"], ["y"]),
        ],
        "INT64",
        {"c": i64(0), "one": i64(1), "far": i64(9)},
    ),
    "moves of bools": ([node("Concat", ["m", "m"], ["d"], axis=0), node("Not", ["d"], ["y"])], "BOOL", {}),
    "rows": ([node("Gather", ["w", "n"], ["y"])], "FLOAT", {"w": f32(9, 3)}),
    "rows by int32": ([node("Gather", ["w", "k"], ["y"])], "FLOAT", {"w": f32(9, 3)}),
    "rows of halves": (
        [node("Gather", ["w", "n"], ["g"]), node("Cast", ["g"], ["y"], to=1)],
        "FLOAT",
        {"w": f32(9, 3).astype(np.float16)},
    ),
    "of an axis": ([node("Gather", ["x", "c"], ["y"], axis=1)], "FLOAT", {"c": i64(3, 0, -1).reshape(3, 1)}),
    "of bools": ([node("Gather", ["m", "c"], ["b"], axis=1), node("Not", ["b"], ["y"])], "BOOL", {"c": i64(4, 0)}),
    "places in order": (
        [node("GatherND", ["m", "c"], ["b"]), node("Not", ["b"], ["y"])],
        "BOOL",
        {"c": np.stack(np.meshgrid(np.arange(4), np.arange(5), indexing="ij"), -1)},
    ),
    "places": ([node("GatherND", ["x", "c"], ["y"])], "FLOAT", {"c": i64(3, 0, -1, 2, 0, -5).reshape(1, 3, 2)}),
    "places of an axis": (
        [node("GatherND", ["w", "c"], ["g"]), node("Add", ["g", "x"], ["y"])],
        "FLOAT",
        {"w": f32(5), "c": i64(4, 0, 1, 2, 3).reshape(5, 1)},
    ),
    "not numbers": (
        [node("Div", ["x", "c"], ["q"]), node("IsNaN", ["q"], ["b"]), node("Where", ["b", "one", "q"], ["y"])],
        "FLOAT",
        {"c": np.array([0, 1, np.nan, 2, np.inf], np.float32), "one": np.float32(1)},
    ),
    "of numbers": ([node("Gather", ["c", "n"], ["y"])], "INT64", {"c": np.arange(9) ** 2}),
}


def feeds() -> dict[str, np.ndarray]:
    random = np.random.default_rng(3)
    values = {name: random.integers(-4, 5, shape) for name, shape in INPUTS.items()}
    values["x"] = 3 * random.standard_normal(INPUTS["x"])
    kinds = {"INT64": np.int64, "INT32": np.int32, "BOOL": np.bool_, "FLOAT": np.float32}
    return {name: value.astype(kinds[TYPES.get(name, "FLOAT")]) for name, value in values.items()}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("fixed", [True, False])
def test_exactly_as_the_host(name: str, fixed: bool) -> None:
    nodes, kind, constants = CASES[name]
    used = {given for one in nodes for given in one.input} & set(INPUTS)
    shapes = {given: INPUTS[given] if fixed else tuple(f"{given}{i}" for i in range(2)) for given in sorted(used)}
    model = make_model(nodes, shapes, {"y": None}, constants, types={**TYPES, "y": kind})
    ours, cpu = whole_session(model), cpu_session(model)
    given = {key: value for key, value in feeds().items() if key in used}
    (result,), (reference,) = ours.run(None, given), cpu.run(None, given)
    assert result.dtype == reference.dtype
    np.testing.assert_array_equal(result, reference)
    assert not reasons(ours)
    (event,) = (event for event in events(ours) if event["event"] == "partition")
    assert not event["steps"]


# Ops from the whole numbers up to the open size of x's last axis, `r`, to `t`, which is added to x.
KNOWN: dict[str, tuple[list[Any], dict[str, np.ndarray]]] = {
    "cosines": ([node("Cast", ["r"], ["f"], to=1), node("Cos", ["f"], ["t"])], {}),
    "sines of a row": (
        [node("Cast", ["r"], ["f"], to=1), node("Sin", ["f"], ["g"]), node("Unsqueeze", ["g", "zero"], ["t"])],
        {},
    ),
    "joined": (
        [
            node("Unsqueeze", ["r", "one"], ["a"]),
            node("Concat", ["a", "a"], ["b"], axis=1),
            node("Slice", ["b", "zero", "one", "one"], ["c"]),
            node("Squeeze", ["c", "one"], ["d"]),
            node("Cast", ["d"], ["t"], to=1),
        ],
        {},
    ),
    "sums": ([node("CumSum", ["r", "zero"], ["c"]), node("Cast", ["c"], ["t"], to=1)], {}),
    "turned": (
        [
            node("Unsqueeze", ["r", "one"], ["a"]),
            node("Concat", ["a", "c"], ["b"], axis=0),
            node("Transpose", ["b"], ["d"]),
            node("Slice", ["d", "one", "far", "one"], ["e"]),
            node("Cast", ["e"], ["t"], to=1),
        ],
        {"c": i64(9).reshape(1, 1), "far": i64(99)},
    ),
    "a sum": ([node("ReduceSum", ["r", "zero"], ["c"]), node("Cast", ["c"], ["t"], to=1)], {}),
    "sums of rows": (
        [
            node("Unsqueeze", ["r", "one"], ["a"]),
            node("Concat", ["a", "a"], ["b"], axis=1),
            node("Cast", ["b"], ["c"], to=1),
            node("ReduceSum", ["c", "one"], ["t"], keepdims=0),
        ],
        {},
    ),
    "by elements": (
        [node("CumSum", ["r", "zero"], ["c"]), node("GatherElements", ["c", "at"], ["d"]),
         node("Cast", ["d"], ["t"], to=1)],
        {"at": i64(2)},
    ),
    "by places": (
        [node("CumSum", ["r", "zero"], ["c"]), node("GatherND", ["c", "at"], ["d"]), node("Cast", ["d"], ["t"], to=1)],
        {"at": i64(-1).reshape(1, 1)},
    ),
    "logic": (
        [
            node("Greater", ["r", "one"], ["a"]),
            node("LessOrEqual", ["r", "three"], ["b"]),
            node("And", ["a", "b"], ["c"]),
            node("Less", ["r", "one"], ["d"]),
            node("Or", ["c", "d"], ["e"]),
            node("GreaterOrEqual", ["r", "three"], ["f"]),
            node("Xor", ["e", "f"], ["g"]),
            node("Not", ["g"], ["h"]),
            node("Cast", ["h"], ["t"], to=1),
        ],
        {"three": i64(3)},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", KNOWN)
def test_what_follows_from_shapes_is_constant(name: str) -> None:
    ops, constants = KNOWN[name]
    nodes = [
        node("Shape", ["x"], ["s"]),
        node("Gather", ["s", "last"], ["n"]),
        node("Range", ["from", "n", "step"], ["r"]),
        *ops,
        node("Add", ["x", "t"], ["z"]),
        node("Relu", ["z"], ["y"]),
    ]
    numbers = {"last": np.int64(-1), "from": np.int64(0), "step": np.int64(1), "zero": i64(0), "one": i64(1)}
    model = make_model(nodes, {"x": ("a", "b")}, {"y": None}, numbers | constants)
    ours, cpu = whole_session(model), cpu_session(model)
    for shape in ((4, 5), (3, 7)):
        given = {"x": f32(*shape)}
        assert relative_error(ours.run(None, given)[0], cpu.run(None, given)[0]) < 1e-6
    assert not reasons(ours)
    (event,) = (event for event in events(ours) if event["event"] == "partition")
    assert not event["steps"]


@pytest.mark.parametrize("kind", [np.int64, np.int32])
def test_a_row_that_there_is_not(kind: Any) -> None:
    """The host says so, and calls after that one run the net."""
    nodes = [node("Gather", ["w", "ids"], ["g"]), node("Relu", ["g"], ["y"])]
    types = {"ids": np.dtype(kind).name.upper()}
    model = make_model(nodes, {"ids": ("b", "s")}, {"y": None}, {"w": f32(9, 3)}, types=types)
    ours, cpu = whole_session(model), cpu_session(model)
    good = np.array([[0, 8, -9], [3, -1, 2]], kind)
    for wrong in (9, -10):
        bad = good.copy()
        bad[1, 1] = wrong
        for _ in range(2):
            with pytest.raises(Exception, match=f"idx={wrong} must be within"):
                ours.run(None, {"ids": bad})
            assert relative_error(ours.run(None, {"ids": good})[0], cpu.run(None, {"ids": good})[0]) == 0
    assert not reasons(ours)
