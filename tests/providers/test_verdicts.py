"""What a verdict holds for: the region's ops with all that decides what they compute."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import helper

from softneuro import providers
from softneuro.providers.report import events
from tests.providers.conftest import make_model
from tests.providers.test_sessions import f32

node = helper.make_node


def one(op: str, *constants: np.ndarray, size: int | str = 8, opset: int = 18, **attributes: Any) -> bytes:
    names = [f"c{i}" for i in range(len(constants))]
    given = ["", *names] if op == "Resize" else names
    nodes = [node("Conv", ["x", "w"], ["a"]), node(op, ["a", *given], ["y"], **attributes)]
    named = {"w": f32(4, 3, 1, 1), **dict(zip(names, constants, strict=True))}
    return make_model(nodes, {"x": (1, 3, size, size)}, {"y": None}, named, opset)


def verdicts(model: bytes, tune: str) -> list[float]:
    """Seconds of the regions that have been judged, when the model is loaded or when it runs."""
    session = providers.session(model, tune=tune, time_budget_s=0.05, min_region_size=1)
    for _ in range(2):
        session.run(None, {"x": f32(1, 3, 8, 8)})
    return [event["seconds"] for event in events(session) if "seconds" in event]


def real(*values: float) -> np.ndarray:
    return np.array(values if len(values) > 1 else values[0], np.float32)


def resize(factor: float) -> bytes:
    return one("Resize", real(1, 1, factor, factor), size="s", mode="nearest")


@pytest.mark.parametrize(
    ("model", "other"),
    [
        (one("Clip", real(0), real(1)), one("Clip", real(0), real(2))),
        (one("Pow", real(2)), one("Pow", real(3))),
        (one("LeakyRelu", alpha=2e-8), one("LeakyRelu", alpha=1e-8)),
        (one("Softmax", opset=12), one("Softmax", opset=13)),
        (resize(2), resize(3)),
    ],
    ids=["Clip", "Pow", "LeakyRelu", "Softmax", "Resize"],
)
def test_other_constants_are_another_region(model: bytes, other: bytes) -> None:
    """A database with the verdict of one has none for the other."""
    found = verdicts(model, "profile")
    assert found
    assert verdicts(model, "cached") == found
    assert not set(verdicts(other, "cached")) & set(found)
