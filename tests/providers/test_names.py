"""Names in a model that break lines, or that are no text at all."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from onnx import helper

from softneuro import providers
from softneuro.providers.report import events
from tests.providers.conftest import make_model, relative_error
from tests.providers.test_sessions import f32

NAMES = {
    "next line": "a\u0085",
    "line separator": "\u2028",
    "line feed": "a\nb",
    "quotes": 'a"\\',
    "bytes": b"\xff\xfea",
}


def model_of(name: str | bytes) -> bytes:
    """Everything in it but inputs and outputs, whose names the runtime's Python decodes, has a name that ends so."""
    nodes = [
        helper.make_node("Conv", ["x", "kQQQ"], ["aQQQ"], "convQQQ"),
        helper.make_node("Tan", ["aQQQ"], ["bQQQ"], "tanQQQ"),
        helper.make_node("MatMul", ["bQQQ", "mQQQ"], ["y"], "productQQQ"),
    ]
    model = make_model(nodes, {"x": (1, 4, 9, 9)}, {"y": None}, {"kQQQ": f32(4, 4, 3, 3), "mQQQ": f32(7, 5)})
    end = name.encode() if isinstance(name, str) else name
    return model.replace(b"QQQ", end.ljust(3, b"-"))


@pytest.mark.parametrize("kind", NAMES)
def test_names(kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, feeds = model_of(NAMES[kind]), {"x": f32(1, 4, 9, 9)}
    session = providers.session(model, tune="off", min_region_size=1)
    expected = session.run(None, feeds)[0]
    text = providers.explain(session)
    assert capsys.readouterr().out == text + "\n"
    assert "conv2d/cpu" in text
    assert all(line.isprintable() for line in text.split("\n"))
    assert json.loads(json.dumps(events(session))) == events(session)

    replaced = providers.convert(model, tmp_path / "out.onnx", tune="off", min_region_size=1)
    assert [name[:4] for name in replaced] == ["conv", "prod"]
    assert [routine.split("/")[0] for routine in replaced.values()] == ["conv2d", "linear"]
    settings = onnxruntime.SessionOptions()
    settings.register_custom_ops_library(providers.get_library_path())
    written = onnxruntime.InferenceSession(tmp_path / "out.onnx", settings, providers=["CPUExecutionProvider"])
    result = written.run(None, feeds)[0]
    assert relative_error(np.asarray(result), np.asarray(expected)) < 1e-5


def test_ops_without_a_name_in_reports() -> None:
    """By what they make, and each op of a pattern that is one to the library."""
    node = helper.make_node
    nodes = [node("Div", ["x", "r"], ["d"]), node("Erf", ["d"], ["e"]), node("Add", ["e", "one"], ["a"]),
             node("Mul", ["x", "a"], ["m"]), node("Mul", ["m", "half"], ["y"], name="last")]  # fmt: skip
    constants = {"r": np.float32(2**0.5), "one": np.float32(1), "half": np.float32(0.5)}
    model = make_model(nodes, {"x": (2, 3)}, {"y": None}, constants)
    settings = onnxruntime.SessionOptions()
    settings.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    told = events(providers.session(model, settings, tune="off", min_region_size=9))[0]["host"]
    assert {(row["op"], row["name"]) for row in told} == {
        ("Div", "d"), ("Erf", "e"), ("Add", "a"), ("Mul", "m"), ("Mul", "last"),
    }  # fmt: skip
