"""Ops of the host in the midst of a region: which ones, what they compute, and what they do to errors and threads."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

from softneuro import providers
from softneuro.error_measure import relative_error
from softneuro.providers.report import events
from tests.providers.conftest import check_model, cpu_session, make_model, random_feeds, reasons, whole_session
from tests.providers.scripts import run_script
from tests.providers.test_ep_context import compiled, load
from tests.providers.test_sessions import f32, i64

node = helper.make_node
WIDTH = 12  # of the images


def between(
    ops: Sequence[Any],
    constants: dict[str, np.ndarray] | None = None,
    kind: str = "FLOAT",
    inputs: dict[str, Sequence[int | str]] | None = None,
    types: dict[str, str] | None = None,
    batch: int | str = 1,
) -> bytes:
    """A convolution, the ops from `r` to `h`, and another that needs what came before them, too."""
    nodes = [
        node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1]),
        node("Relu", ["c"], ["r"]),
        *ops,
        node("Conv", ["h", "w"], ["c2"], pads=[1, 1, 1, 1]),
        node("Add", ["c2", "r"], ["a"]),
        node("Sigmoid", ["a"], ["y"]),
    ]
    w = (0.2 * f32(8, 8, 3, 3)).astype(np.float16 if kind == "FLOAT16" else np.float32)
    every = {"x": kind, "y": kind, **(types or {})}
    shapes = {"x": [batch, 8, WIDTH, WIDTH], **(inputs or {})}
    return make_model(nodes, shapes, {"y": None}, {"w": w, **(constants or {})}, types=every)


TRILU = [node("Trilu", ["r", "k"], ["h"])]
DIAGONAL = {"k": np.int64(1)}
STEPS: dict[str, tuple[list[Any], dict[str, np.ndarray]]] = {
    "Trilu": (TRILU, DIAGONAL),
    "TopK": ([node("TopK", ["r", "k"], ["h", "i"], axis=3)], {"k": i64(WIDTH)}),
    "Einsum": ([node("Einsum", ["r", "r"], ["h"], equation="nchw,nchv->nchw")], {}),
    "TopK,ScatterElements": (
        [node("TopK", ["r", "k"], ["v", "i"], axis=3), node("ScatterElements", ["r", "i", "v"], ["h"], axis=3)],
        {"k": i64(WIDTH)},
    ),
    "Cast": ([node("Cast", ["r"], ["i"], to=TensorProto.UINT8), node("Cast", ["i"], ["h"], to=1)], {}),
    "Ceil,Sign": ([node("Ceil", ["r"], ["v"]), node("Sign", ["v"], ["h"])], {}),
}


def steps_of(session: Any) -> list[str]:
    return [row["op"] for event in events(session) if event["event"] == "partition" for row in event["steps"]]


@pytest.mark.parametrize("ops", STEPS)
@pytest.mark.parametrize("batch", [1, "n"])
def test_steps(ops: str, batch: int | str) -> None:
    model = between(*STEPS[ops], batch=batch)
    check_model(model, {"n": 2})
    ours = whole_session(model)
    ours.run(None, random_feeds(ours, {"n": 2}))
    assert steps_of(ours) == ops.split(",")
    assert len([event for event in events(ours) if event["event"] == "prepared"]) == 1


def test_half_precision_is_float32_inside() -> None:
    model, plain = between(TRILU, DIAGONAL, "FLOAT16"), cpu_session(between(TRILU, DIAGONAL))
    ours = whole_session(model)
    x = f32(1, 8, WIDTH, WIDTH).astype(np.float16)
    assert steps_of(ours) == ["Trilu"]
    assert relative_error(ours.run(None, {"x": x})[0], plain.run(None, {"x": x.astype(np.float32)})[0]) < 1e-3
    assert not reasons(ours)


def test_integers_of_a_step_leave_the_region() -> None:
    nodes = [
        node("Conv", ["x", "w"], ["c"]),
        node("Relu", ["c"], ["r"]),
        node("TopK", ["r", "k"], ["v", "i"]),
        node("Neg", ["v"], ["n"]),
        node("Sigmoid", ["n"], ["y"]),
        node("Greater", ["v", "zero"], ["b"]),
        node("Cast", ["b"], ["f"], to=1),
        node("Exp", ["f"], ["e"]),
        node("Mul", ["e", "e"], ["z"]),
    ]
    constants = {"w": f32(4, 3, 3, 3), "k": i64(2), "zero": np.float32(0)}
    types = {"i": "INT64", "b": "BOOL"}
    model = make_model(nodes, {"x": [1, 3, 9, 9]}, dict.fromkeys("iybz"), constants, types=types)
    ours, cpu = whole_session(model), cpu_session(model)
    assert steps_of(ours) == ["TopK"]
    feeds = random_feeds(cpu)
    for result, reference in zip(ours.run(None, feeds), cpu.run(None, feeds), strict=True):
        assert result.dtype == reference.dtype
        assert relative_error(result, reference) < 1e-5


def test_explain_tells_of_steps(capsys: pytest.CaptureFixture[str]) -> None:
    text = providers.explain(whole_session(between(TRILU, DIAGONAL)))
    assert text in capsys.readouterr().out
    assert "inside regions, run by the CPU provider:" in text
    assert "Trilu x1" in text
    assert "host/cpu:float32:nchw/call" in text


def test_tuned_and_judged() -> None:
    ours = providers.session(between(TRILU, DIAGONAL), time_budget_s=0.3, never_worse=0)
    (prepared,) = (event for event in events(ours) if event["event"] == "prepared")
    (step,) = (layer for layer in prepared["layers"] if layer["type"] == "host")
    assert step["seconds"] > 0
    assert steps_of(providers.session(between(TRILU, DIAGONAL), time_budget_s=0.3)) in (["Trilu"], [])


@pytest.mark.parametrize(
    ("ops", "constants", "host"),
    [
        # Its result's shape depends on values.
        ([node("Compress", ["r", "all"], ["h"], axis=3)], {"all": np.ones(WIDTH, bool)}, ["Compress"]),
        # Another result at every call.
        ([node("RandomUniformLike", ["r"], ["u"]), node("Mul", ["u", "r"], ["h"])], {}, ["RandomUniformLike"]),
        # A type that the core does not have.
        (
            [node("Cast", ["r"], ["d"], to=11), node("Sin", ["d"], ["s"]), node("Cast", ["s"], ["h"], to=1)],
            {},
            ["Cast", "Cast", "Sin"],
        ),
        # More steps than there is work beside them.
        ([node("Atan", [a], [b]) for a, b in zip("rmnopqst", "mnopqsth", strict=True)], {}, ["Atan"] * 8),
    ],
)
def test_what_is_no_step(ops: list[Any], constants: dict[str, np.ndarray], host: list[str]) -> None:
    model = between(ops, constants)
    ours, cpu = providers.session(model, tune="off"), cpu_session(model)
    assert steps_of(ours) == []
    assert sorted(row["op"] for row in events(ours)[0]["host"]) == host
    feeds = random_feeds(cpu)
    if "RandomUniformLike" not in host:
        assert relative_error(ours.run(None, feeds)[0], cpu.run(None, feeds)[0]) < 1e-5


def test_explain_tells_of_what_is_between_regions(capsys: pytest.CaptureFixture[str]) -> None:
    ours = providers.session(between([node("RandomUniformLike", ["r"], ["h"])], {}), tune="off")
    (cut,) = events(ours)[0]["cuts"]
    assert [row["op"] for row in cut["ops"]] == ["RandomUniformLike"]
    regions = [event["region"] for event in events(ours) if event["event"] == "prepared"]
    assert [cut["before"], cut["after"]] == regions
    capsys.readouterr()
    providers.explain(ours)
    assert f"between {regions[0]} and {regions[1]}: RandomUniformLike (" in capsys.readouterr().out


def test_control_flow_is_no_step() -> None:
    branch = helper.make_graph([node("Neg", ["r"], ["o"])], "b", [], [helper.make_tensor_value_info("o", 1, None)])
    model = between(
        [node("If", ["yes"], ["h"], then_branch=branch, else_branch=branch)], inputs={"yes": []}, types={"yes": "BOOL"}
    )
    assert steps_of(providers.session(model, tune="off")) == []


def test_outermost_ops_stay_with_the_host() -> None:
    """They cut nothing apart."""
    nodes = [
        node("Tan", ["x"], ["s"]),
        node("Relu", ["s"], ["r"]),
        node("Neg", ["r"], ["n"]),
        node("Atan", ["n"], ["y"]),
    ]
    ours = providers.session(make_model(nodes, {"x": [2, 3]}, {"y": None}), tune="off")
    assert steps_of(ours) == []
    assert sorted(row["op"] for row in events(ours)[0]["host"]) == ["Atan", "Tan"]


SCATTER = [node("ScatterElements", ["r", "at", "r"], ["h"], axis=3)]


def indexed() -> tuple[Any, Any, dict[str, np.ndarray]]:
    shape = (1, 8, WIDTH, WIDTH)
    model = between(SCATTER, inputs={"at": shape}, types={"at": "INT64"})
    feeds = {"x": f32(*shape), "at": np.random.default_rng(0).integers(0, WIDTH, shape)}
    return whole_session(model), cpu_session(model), feeds


def test_a_step_that_raises() -> None:
    """The run says what the host says, and later runs are as if nothing had been."""
    ours, cpu, feeds = indexed()
    before = ours.run(None, feeds)[0]
    assert relative_error(before, cpu.run(None, feeds)[0]) < 1e-5
    for session in (ours, cpu):
        with pytest.raises(Exception, match="out of data bounds"):
            session.run(None, {**feeds, "at": feeds["at"] + WIDTH})
    np.testing.assert_array_equal(ours.run(None, feeds)[0], before)


def test_eight_threads_at_once() -> None:
    ours, _, feeds = indexed()
    wrong = {**feeds, "at": feeds["at"] + WIDTH}
    given = [{**feeds, "x": f32(1, 8, WIDTH, WIDTH, seed=i)} for i in range(8)]
    expected = [ours.run(None, one)[0] for one in given]

    def run(index: int) -> None:
        for turn in range(20):
            if (turn + index) % 5 == 0:
                with pytest.raises(Exception, match="out of data bounds"):
                    ours.run(None, wrong)
            np.testing.assert_array_equal(ours.run(None, given[index])[0], expected[index])

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(run, range(8)))


def test_without_the_step_where_it_does_not_pay() -> None:
    """A region that cannot be compared with the host is cut apart at its steps."""
    script = """
from tests.providers.test_host_steps import *
session = providers.session(between(TRILU, DIAGONAL), time_budget_s=0.3)
for row in next(event for event in events(session) if event["event"] == "partition")["host"]:
    print(row["op"], row["reason"])
"""
    done = run_script(script, SOFTNEURO_ORT_FAIL="Step")
    assert done.returncode == 0, done.stderr[-2000:]
    assert "Trilu a region with it inside does not pay" in done.stdout


def test_compiled_model(tmp_path: Path) -> None:
    model = between(*STEPS["TopK,ScatterElements"])
    ours, cpu = load(compiled(model, tmp_path)), cpu_session(model)
    feeds = random_feeds(cpu)
    assert relative_error(ours.run(None, feeds)[0], cpu.run(None, feeds)[0]) < 1e-5
    assert not reasons(ours)
    kinds = [layer["type"] for event in events(ours) for layer in event.get("layers", [])]
    assert kinds.count("host") == 2


def test_large_constants_of_a_step() -> None:
    """They are borrowed, not copied, and live as long as the nets."""
    table = f32(WIDTH, WIDTH)
    ops = [node("Einsum", ["r", "table"], ["h"], equation="nchw,wv->nchv")]
    model = between(ops, {"table": table}, batch="n")
    check_model(model, {"n": 2})
    assert steps_of(whole_session(model)) == ["Einsum"]
