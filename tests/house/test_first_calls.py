"""The benchmark of first calls."""

from __future__ import annotations

import logging

from benchmarks import first_calls, models


def test_stages_of_all_tunings_add_up() -> None:
    stages = first_calls.Stages()
    for text in (
        "tune: stages: other 0.000 s (1), warm up 0.250 s (12), time conv2d 1.500 s (80)",
        "planned 57 layers in 8.48 s: 15.0 ms predicted, 15.0 ms at best; 810 costs measured, 0 recalled, 0 guessed",
        "tune: stages: warm up 0.500 s (3)",
        "planned 2 layers in 0.10 s: 1.000 ms predicted, 1.000 ms at best; 9 costs measured, 0 recalled, 0 guessed",
        "something else in 3.0 s (4)",
    ):
        stages.emit(logging.LogRecord("softneuro", logging.INFO, "", 0, text, None, None))
    assert stages.seconds == {"other": 0, "warm up": 0.75, "time conv2d": 1.5}
    assert stages.measured == 819


def test_a_row_adds_up() -> None:
    eager = {"seconds": 1.5, "call_ms": 20.0}
    cold = {"seconds": 10.0, "process": 12.0, "dynamo": 1.0, "backend": 2.0, "stages": {"a": 3.0, "b": 1.0}}
    cold |= {"measured": 7, "call_ms": 10.0}
    warm = {"seconds": 2.5, "process": 2.0}
    cells = dict(zip(first_calls.HEADER, first_calls.row("net, 1", eager, cold, warm), strict=True))
    assert cells["tuning s"] == "4.00"
    assert cells["rest s"] == "3.00"


def test_an_encoder_of_berts_size() -> None:
    model, words = models.build("bert_base", size=16, batch=2)
    assert 105e6 < sum(p.numel() for p in model.parameters()) < 115e6
    states, pooled = model(words)
    assert states.shape == (2, 16, 768)
    assert pooled.shape == (2, 768)
