"""Tuning under a budget, by errors and by an evaluation, in Python and on the command line."""

from __future__ import annotations

import importlib.util
import json
import logging
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

import softneuro
from softneuro import providers
from tests.providers.conftest import cpu_session, make_model
from tests.providers.test_calibrated import BYTES, QUICK, batches, error_of, in_bytes, network, routines


def test_max_error(tmp_path: Path) -> None:
    model = network()
    tuned = providers.tune(model, batches(8), max_error=0.05, calibration=tmp_path / "r.txt", options=BYTES)
    assert 1e-4 < tuned.chosen.error <= 0.05
    assert tuned.chosen in tuned.front
    assert len(str(tuned).split("\n")) == 1 + len({trial.plan for trial in tuned.trials})
    session = providers.session(model, **tuned.options)
    assert in_bytes(session) == 3
    assert error_of(session, model, batches(8)) < 0.06
    assert "*" in str(tuned)


def test_shapes_of_many_sizes(tmp_path: Path) -> None:
    """The proof is of bytes, whichever shapes the host would run for now."""
    data = [x for rows in (1, 2) for x in batches(8, rows=rows)]
    options = {**QUICK, "keep": BYTES["keep"]}
    tuned = providers.tune(network("n"), data, max_error=0.05, calibration=tmp_path / "r.txt", options=options)
    assert 1e-4 < tuned.chosen.error <= 0.05


@pytest.mark.parametrize("options", [QUICK, BYTES], ids=["free", "pinned to bytes"])
def test_a_budget_that_nothing_keeps_to(
    options: dict[str, Any], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        tuned = providers.tune(network(), batches(2), max_error=1e-9, calibration=tmp_path / "r.txt", options=options)
    assert tuned.chosen.error < 1e-5
    assert in_bytes(providers.session(network(), **tuned.options)) == 0
    assert "floats run" in caplog.text
    assert "too few batches" in caplog.text


def agreement(model: bytes, data: list[np.ndarray]) -> Any:
    """How well a session agrees with floats, by sample."""
    truths = [cpu_session(model).run(None, {"x": x})[0] for x in data]

    def evaluate(session: Any) -> list[float]:
        results = [session.run(None, {"x": x})[0] for x in data]
        return [-float(np.linalg.norm(a - b) / np.linalg.norm(b)) for a, b in zip(results, truths, strict=True)]

    return evaluate


def test_a_drop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("softneuro.tuned.LEVELS", (0.3, 0.05, 0.002))
    model, data = network(), batches(8)
    options = {**BYTES, "keep": "gemm1:qint8"}
    given: dict[str, Any] = {"calibration": tmp_path / "r.txt", "options": options, "state": tmp_path / "state.json"}
    calls = 0
    score = agreement(model, data)

    def evaluate(session: Any) -> Any:
        nonlocal calls
        calls += 1
        return score(session)

    tuned = providers.tune(model, data, evaluate=evaluate, max_drop=0.1, max_evaluations=4, **given)
    assert tuned.chosen.drop is not None
    assert tuned.chosen.drop <= 0.1
    assert tuned.chosen.limit > 0
    assert tuned.chosen.interval is not None
    assert 2 <= calls <= 4
    floats = providers.tune(model, data, evaluate=evaluate, max_drop=0, max_evaluations=4, **given)
    assert floats.chosen.error < 1e-5


def test_what_is_refused(tmp_path: Path) -> None:
    given: dict[str, Any] = {"calibration": tmp_path / "r.txt", "options": QUICK}
    with pytest.raises(softneuro.Error, match="one limit"):
        providers.tune(network(), batches(2), **given)
    with pytest.raises(softneuro.Error, match="give both"):
        providers.tune(network(), batches(2), max_drop=0.1, **given)
    with pytest.raises(softneuro.Error, match="open shape"):
        providers.tune(network("n"), batches(2), max_error=0.1, out=tmp_path / "out.onnx", **given)
    with pytest.raises(ZeroDivisionError):
        providers.tune(network(), batches(2), evaluate=lambda session: 1 / 0, max_drop=0.1, **given)


def test_scores_that_are_none(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """What an evaluation may do wrong is told of at this door, too."""
    given: dict[str, Any] = {"calibration": tmp_path / "r.txt", "options": {**BYTES, "tune": "off"}, "max_drop": 0.5}
    for value, message in (
        (float("nan"), "returned nan"),
        ([1.0, float("nan")], "nan for sample 1"),
        ([], "no samples"),
    ):
        with pytest.raises(softneuro.Error, match=message):
            providers.tune(network(), batches(4), evaluate=lambda _, value=value: value, **given)
    counts = iter([4, 4, 3])
    with pytest.raises(softneuro.Error, match="4 by sample for floats, and 3"):
        providers.tune(network(), batches(4), evaluate=lambda _: [0.5] * next(counts), **given)
    scores = iter([0.9, 0.8])
    with caplog.at_level(logging.WARNING):
        providers.tune(network(), batches(4), evaluate=lambda _: next(scores, 0.9), max_evaluations=3, **given)
    assert "no drop below 0.1 can be told" in caplog.text


def test_the_smallest_region_is_that_of_the_options(tmp_path: Path) -> None:
    given: dict[str, Any] = {"max_error": 0.05, "calibration": tmp_path / "r.txt"}
    with pytest.raises(softneuro.Error, match="nothing to calibrate"):
        providers.tune(network(), batches(4), options={**BYTES, "min_region_size": 50}, **given)
    model = make_model([helper.make_node("Relu", ["x"], ["y"])], {"x": (1, SIZE_OF_X)}, {"y": (1, SIZE_OF_X)})
    with pytest.raises(softneuro.Error, match="nothing to calibrate"):
        providers.tune(model, batches(4), options=QUICK, **given)
    tuned = providers.tune(model, batches(4), options={**BYTES, "min_region_size": 1}, **given)
    assert tuned.options["min_region_size"] == "1"
    session = providers.session(model, **tuned.options)
    assert ["qint8" in routine for routine in routines(session)] == [True]


@pytest.mark.skipif(importlib.util.find_spec("click") is None, reason="click is not installed")
def test_commands(tmp_path: Path) -> None:
    from tests.providers.test_cli import call, result_of

    model, data, out = tmp_path / "model.onnx", tmp_path / "x.npz", tmp_path / "tuned.onnx"
    model.write_bytes(network("n"))
    np.savez(data, x=np.stack(batches(8)))
    options = ("--shape", f"x=1,{SIZE_OF_X}", "-O", "time_budget_s=0.5", "-O", "threads=1")
    options += ("-O", "never_worse=0", "-O", "keep=*:qint8")
    done = call("calibrate", model, "--data", data, "--method", "mse", "-o", tmp_path / "r.txt", *options)
    assert done.exit_code == 0, done.output
    assert "8 batch(es), 1 region(s)" in done.output
    explained = result_of("explain", model, "-O", f"calibration={tmp_path / 'r.txt'}", "-O", "max_error=0.05", *options)
    assert "qint8" in json.dumps(explained)
    budget = ("--data", data, "--max-error", 0.05, "--ranges", tmp_path / "r2.txt", "-o", out)
    done = call("tune", model, *budget, *options)
    assert done.exit_code == 0, done.output
    assert "limit" in done.output
    assert onnx.load(out).graph.node[0].op_type == "EPContext"
    assert in_bytes(providers.session(out, threads=1)) == 3
    assert result_of("tune", model, *budget, "--force", *options)["chosen"]["error"] <= 0.05
    assert call("tune", model, "--data", data, "-o", tmp_path / "o").exit_code == 2
    assert "open shape" in call("tune", model, *budget, "--force").output


SIZE_OF_X = batches(1)[0].shape[1]
